package term

import (
	"cmp"
	"os"
	"os/exec"
	"os/signal"
	"strings"
)

// Page shows what is written from now on in the user's pager, PAGER or else less. Call done after the last write: it
// returns when the user has left the pager. A write after the user has left returns [syscall.EPIPE], which Err does not
// report.
//
// Page does nothing if the stream is no terminal that can be rewritten, or if there is no such program; PAGER=cat
// switches it off.
func (o *Out) Page(getenv func(string) string) (done func()) {
	command := cmp.Or(strings.TrimSpace(getenv("PAGER")), "less")
	name, _, _ := strings.Cut(command, " ")
	if !o.Rewrites() || name == "cat" {
		return func() {}
	}
	if _, err := exec.LookPath(name); err != nil {
		return func() {}
	}
	pager := exec.Command("sh", "-c", command) //nolint:noctx // the reader ends it
	pager.Stdout, pager.Stderr = o.w, os.Stderr
	if getenv("LESS") == "" {
		pager.Env = append(pager.Environ(), "LESS=FRX") // like git: quit if it fits, keep colours and text
	}
	pipe, err := pager.StdinPipe()
	if err == nil {
		err = pager.Start()
	}
	if err != nil {
		return func() {}
	}
	signal.Ignore(os.Interrupt) // Ctrl-C is for the pager
	screen := o.w
	o.w, o.paged = pipe, true
	return func() {
		_ = pipe.Close()
		_ = pager.Wait() // its exit code says nothing about what was printed
		o.w, o.paged = screen, false
		signal.Reset(os.Interrupt)
	}
}
