// The port of a node that an API server sends exec to: programs of pods, over the streams of a real container runtime.
//
// DIRECTORY/NAMESPACE_POD.json tells of a pod that runs; the program notes the pid of each process that it starts for
// it in DIRECTORY/UID.pids. SIGUSR1 cuts all streams; what runs in them goes on.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// A pod that runs, as the kubelet of the tests has written it.
type pod struct {
	UID       string   `json:"uid"`
	Container string   `json:"container"`
	Env       []string `json:"env"`
}

// The node's pods, and the connections that carry streams.
type node struct {
	directory string
	lock      sync.Mutex
	streams   map[net.Conn]bool
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: kubernetes-node DIRECTORY PORT")
		os.Exit(2)
	}
	serving := &node{directory: os.Args[1], streams: map[net.Conn]bool{}}
	cuts := make(chan os.Signal, 1)
	signal.Notify(cuts, syscall.SIGUSR1)
	go serving.cutStreams(cuts)
	server := &http.Server{
		Addr:      "127.0.0.1:" + os.Args[2],
		Handler:   http.HandlerFunc(serving.answer),
		ConnState: serving.note,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate()}, NextProtos: []string{"http/1.1"}},
	}
	fmt.Fprintln(os.Stderr, server.ListenAndServeTLS("", ""))
	os.Exit(1)
}

// Answer /exec/NAMESPACE/POD/CONTAINER, as a kubelet does.
func (n *node) answer(w http.ResponseWriter, request *http.Request) {
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	if len(parts) == 1 && parts[0] == "healthz" {
		fmt.Fprint(w, "ok")
		return
	}
	if len(parts) != 4 || parts[0] != "exec" {
		http.NotFound(w, request)
		return
	}
	found, err := n.pod(parts[1], parts[2])
	if err != nil {
		http.Error(w, "pod does not exist", http.StatusNotFound)
		return
	}
	if found.Container != parts[3] {
		http.Error(w, fmt.Sprintf("container not found (%q)", parts[3]), http.StatusInternalServerError)
		return
	}
	options, err := remotecommand.NewOptions(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	command := request.URL.Query()["command"]
	remotecommand.ServeExec(w, request, &programs{n.directory, found}, parts[2], found.UID, parts[3], command,
		options, 4*time.Hour, 30*time.Second, remotecommand.SupportedStreamingProtocols)
}

func (n *node) pod(namespace, name string) (found pod, err error) {
	told, err := os.ReadFile(filepath.Join(n.directory, namespace+"_"+name+".json"))
	if err == nil {
		err = json.Unmarshal(told, &found)
	}
	return found, err
}

// Note connections from when they were taken out of HTTP for streams.
func (n *node) note(connection net.Conn, state http.ConnState) {
	n.lock.Lock()
	defer n.lock.Unlock()
	if state == http.StateHijacked {
		n.streams[connection] = true
	}
}

func (n *node) cutStreams(cuts <-chan os.Signal) {
	for range cuts {
		n.lock.Lock()
		for connection := range n.streams {
			connection.Close()
		}
		n.streams = map[net.Conn]bool{}
		n.lock.Unlock()
	}
}

// The programs of one pod, which are processes of this machine.
type programs struct {
	directory string
	pod       pod
}

// ExecInContainer runs a program to its end, which is told behind all its output.
func (p *programs) ExecInContainer(_ context.Context, _, _, _ string, argv []string, in io.Reader,
	out, err io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize, _ time.Duration) error {
	if len(argv) == 0 {
		return errors.New("there is no command")
	}
	command := exec.Command(p.program(argv[0]), argv[1:]...)
	command.Args[0] = argv[0]
	command.Env, command.Dir = p.pod.Env, "/"
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if out != nil {
		command.Stdout = out
	}
	if err != nil {
		command.Stderr = err
	}
	stdin, failure := command.StdinPipe()
	if failure != nil {
		return failure
	}
	if failure := command.Start(); failure != nil {
		return failure
	}
	p.note(command.Process.Pid)
	go func() {
		if in != nil {
			io.Copy(stdin, in)
		}
		stdin.Close()
	}()
	ended := command.Wait()
	state := command.ProcessState
	if state == nil {
		return ended
	}
	code := state.ExitCode()
	if status, known := state.Sys().(syscall.WaitStatus); known && status.Signaled() {
		code = 128 + int(status.Signal())
	}
	if code == 0 {
		return nil
	}
	return utilexec.CodeExitError{Err: fmt.Errorf("exit status %d", code), Code: code}
}

// The path of a program by the PATH of its pod.
func (p *programs) program(name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	for _, entry := range p.pod.Env {
		if path, is := strings.CutPrefix(entry, "PATH="); is {
			for _, directory := range filepath.SplitList(path) {
				if found, err := exec.LookPath(filepath.Join(directory, name)); err == nil {
					return found
				}
			}
		}
	}
	return name
}

func (p *programs) note(pid int) {
	notes, err := os.OpenFile(filepath.Join(p.directory, p.pod.UID+".pids"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		fmt.Fprintln(notes, pid)
		notes.Close()
	}
}

// A certificate that vouches for itself: an API server without a certificate authority for kubelets asks for no more.
func certificate() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "node"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	made, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{made}, PrivateKey: key}
}
