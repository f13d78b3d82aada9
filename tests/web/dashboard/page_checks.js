// What tests ask a page about itself.

function channel(value) {
  const share = value / 255;
  return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
}

function luminance([red, green, blue]) {
  return 0.2126 * channel(red) + 0.7152 * channel(green) + 0.0722 * channel(blue);
}

function parsed(colour) {
  const [red, green, blue, alpha = 1] = colour.match(/[\d.]+/g).map(Number);
  return [red, green, blue, alpha];
}

// The first background behind an element that is not transparent.
function ground(element) {
  for (let at = element; at; at = at.parentElement) {
    const colour = parsed(getComputedStyle(at).backgroundColor);
    if (colour[3] === 1) return colour;
  }
  return [255, 255, 255, 1];
}

function contrast(first, second) {
  const [high, low] = [luminance(first), luminance(second)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
}

function isSeen(element) {
  return element.checkVisibility({ visibilityProperty: true }) && !element.closest(".unseen, .skip");
}

// Texts whose contrast is below that of WCAG 2.2, 1.4.3.
function faintTexts() {
  const faint = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !isSeen(element)) continue;
    const style = getComputedStyle(element);
    const colour = element.closest("svg") ? style.fill : style.color;
    const found = contrast(parsed(colour), ground(element));
    if (found < 4.5) faint.push(`${element.textContent.trim().slice(0, 40)}: ${found.toFixed(2)}`);
  }
  return faint;
}

// Links, buttons and pictures that a screen reader has no name for, and tables without headings.
function withoutName() {
  const named = (e) => e.textContent.trim() || e.getAttribute("aria-label");
  const stops = [...document.querySelectorAll("a, button")].filter((e) => isSeen(e) && !named(e));
  const pictures = [...document.querySelectorAll("svg")].filter(
    (e) => e.getAttribute("aria-hidden") !== "true" && !(e.getAttribute("role") === "img" && named(e)),
  );
  const tables = [...document.querySelectorAll("table")].filter((e) => !e.querySelector("th[scope]"));
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  const twice = ids.filter((id, at) => ids.indexOf(id) !== at);
  const lost = [...document.querySelectorAll("[aria-labelledby]")].filter(
    (e) => !document.getElementById(e.getAttribute("aria-labelledby")),
  );
  return [...[...stops, ...pictures, ...tables, ...lost].map((e) => e.outerHTML), ...twice];
}

// What is wrong with the headings: one is the first, and no level is left out.
function headings() {
  const levels = [...document.querySelectorAll("h1, h2, h3, h4")].map((e) => Number(e.tagName[1]));
  const skipped = levels.some((level, at) => at > 0 && level > levels[at - 1] + 1);
  const firsts = levels.filter((level) => level === 1).length;
  return firsts === 1 && levels[0] === 1 && !skipped ? [] : [`headings: ${levels}`];
}

// Links and buttons that look the same when they have the focus.
function stopsWithoutOutline() {
  const without = [];
  for (const element of document.querySelectorAll("a, button")) {
    if (!isSeen(element)) continue;
    element.focus({ focusVisible: true });
    const style = getComputedStyle(element);
    const drawn = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
    if (document.activeElement !== element || !drawn) without.push(element.outerHTML);
  }
  return without;
}
