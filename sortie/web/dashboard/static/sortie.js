// Keeps a page up to date and makes clocks tick; without it pages are static, and all of them work.
"use strict";
(() => {
  let skew = Number(document.documentElement.dataset.now) - Date.now() / 1000;
  const liveWord = document.getElementById("live");

  // The same words as those of formats.py.
  function span(seconds) {
    const whole = Math.max(0, Math.floor(seconds));
    if (whole < 60) return `${whole}s`;
    const two = (n) => String(n).padStart(2, "0");
    const minutes = Math.floor(whole / 60);
    if (minutes < 60) return `${minutes}m${two(whole % 60)}s`;
    const hours = Math.floor(minutes / 60);
    if (hours < 24) return `${hours}h${two(minutes % 60)}m`;
    return `${Math.floor(hours / 24)}d${two(hours % 24)}h`;
  }

  function tick(root) {
    const now = Date.now() / 1000 + skew;
    for (const time of root.querySelectorAll("time[data-tick]")) {
      const at = Date.parse(time.dateTime) / 1000;
      const left = at - now;
      const text = time.dataset.tick === "since" ? span(-left) : left > 0 ? `in ${span(left)}` : "due";
      if (time.textContent !== text) time.textContent = text;
    }
  }

  function element(html) {
    const template = document.createElement("template");
    template.innerHTML = html;
    tick(template.content);
    return template.content.firstElementChild;
  }

  // Put a new element in the place of an old one; who was on a link, button or field in it stays on it,
  // and what was typed into a field stays as long as the field is there.
  function replace(old, fresh) {
    const stops = "a, button, summary, textarea, [tabindex]";
    const nth = old.contains(document.activeElement)
      ? [...old.querySelectorAll(stops)].indexOf(document.activeElement)
      : -1;
    const typed = [...old.querySelectorAll("textarea")].filter((field) => field.value);
    old.replaceWith(fresh);
    for (const field of typed) {
      const same = fresh.querySelector(`#${CSS.escape(field.id)}`);
      if (!same) continue;
      same.value = field.value;
      same.setSelectionRange(field.selectionStart, field.selectionEnd);
    }
    if (nth >= 0) fresh.querySelectorAll(stops)[nth]?.focus({ preventScroll: true });
  }

  function apply(told) {
    skew = told.now - Date.now() / 1000;
    const fresh = new Map();
    for (const [id, html] of Object.entries(told.set)) {
      const made = element(html);
      const old = document.getElementById(id);
      if (old) replace(old, made);
      else fresh.set(id, made);
    }
    for (const [id, ids] of Object.entries(told.order)) {
      const list = document.getElementById(id);
      if (list) arrange(list, ids, fresh);
    }
  }

  function arrange(list, ids, fresh) {
    const follows = list.scrollTop + list.clientHeight >= list.scrollHeight - 4;
    const wanted = new Set(ids);
    for (const child of [...list.children]) if (!wanted.has(child.id)) child.remove();
    const here = new Map([...list.children].map((child) => [child.id, child]));
    let next = list.firstElementChild;
    for (const id of ids) {
      const child = here.get(id) ?? fresh.get(id);
      if (!child) continue;
      if (child === next) next = next.nextElementSibling;
      else list.insertBefore(child, next);
    }
    if (follows) list.scrollTop = list.scrollHeight;
  }

  function say(word, kind) {
    if (!liveWord) return;
    liveWord.textContent = word;
    liveWord.className = `live ${kind}`;
  }

  function follow(address, last) {
    const source = new EventSource(`${address}?last_event_id=${encodeURIComponent(last)}`);
    source.addEventListener("open", () => say("live", "on"));
    source.addEventListener("page", (event) => apply(JSON.parse(event.data)));
    source.addEventListener("error", () => {
      say("reconnecting…", "off");
      // A browser gives up after an answer that is no stream, such as 503: begin anew.
      if (source.readyState === EventSource.CLOSED) setTimeout(follow, 5000, address, "");
    });
  }

  function ask(address) {
    const known = new Map();
    const again = async () => {
      if (document.visibilityState === "visible") {
        try {
          const answer = await fetch(address, { cache: "no-store" });
          if (!answer.ok) throw new Error(String(answer.status));
          const told = await answer.json();
          for (const [id, html] of Object.entries(told.set)) {
            if (known.get(id) === html) delete told.set[id];
            else known.set(id, html);
          }
          apply(told);
          say("live", "on");
        } catch {
          say("reconnecting…", "off");
        }
      }
      setTimeout(again, 2000);
    };
    setTimeout(again, 1000);
  }

  // Ask in a dialog; without it the same address shows a page that asks.
  const dialog = document.getElementById("confirm");
  if (dialog?.showModal) {
    const form = dialog.querySelector("form");
    const [no, yes] = dialog.querySelectorAll("button");
    no.addEventListener("click", () => dialog.close());
    document.addEventListener("click", (event) => {
      const link = event.target.closest?.("a[data-confirm]");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      document.getElementById("confirm-question").textContent = link.dataset.confirm;
      yes.textContent = link.dataset.label;
      form.action = link.href;
      dialog.showModal();
    });
  }
  document.addEventListener("keydown", (event) => {
    const link = event.key === " " && event.target.closest?.("a[role=button]");
    if (!link) return;
    event.preventDefault();
    link.click();
  });

  // What was done is said once, not again when the page is loaded again.
  const address = new URL(location.href);
  if (address.searchParams.has("done")) {
    address.searchParams.delete("done");
    history.replaceState(null, "", address);
  }

  for (const list of document.querySelectorAll(".find select"))
    list.addEventListener("change", () => list.form.requestSubmit());

  const lines = document.getElementById("transcript-lines");
  if (lines) lines.scrollTop = lines.scrollHeight;
  tick(document);
  setInterval(tick, 1000, document);
  const { live, last, poll } = document.body.dataset;
  if (live) follow(live, last);
  if (poll) ask(poll);
})();
