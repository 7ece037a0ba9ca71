package main

import (
	"bufio"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/errand-fleet/errand/e2e/chaos/script"
)

// process of a test that speaks to the witness.
type speaker struct {
	*testing.T
	net.Conn
	in *bufio.Reader
}

func (s speaker) tell(word script.Word) script.Reply {
	s.Helper()
	line, err := json.Marshal(word)
	if err == nil {
		_, err = s.Write(append(line, '\n'))
	}
	var r script.Reply
	if err == nil {
		line, err = s.in.ReadBytes('\n')
	}
	if err == nil {
		err = json.Unmarshal(line, &r)
	}
	if err != nil {
		s.Fatal(err)
	}
	return r
}

func meetWitness(t *testing.T, w *witness, word script.Word) speaker {
	t.Helper()
	c, err := net.Dial("tcp", w.addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	s := speaker{t, c, bufio.NewReader(c)}
	s.tell(word)
	return s
}

// The witness knows who is alive by the connections, and by the kernel where a connection's end has not been read yet.
func TestWitness(t *testing.T) {
	t.Parallel()
	w, err := newWitness()
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	first := meetWitness(t, w, script.Word{
		Role: script.CLI, Pid: os.Getpid(), Parent: os.Getppid(), Run: "r1", Dir: "/d",
	})
	if got := first.tell(script.Word{Token: script.Token(1)}).Before; got != 0 {
		t.Errorf("taken up %d times before", got)
	}
	if got := first.tell(script.Word{Token: script.Token(1)}).Before; got != 1 {
		t.Errorf("taken up %d times before", got)
	}
	up := w.present(script.CLI)
	if len(up) != 1 || up[0].pid != os.Getpid() || up[0].keeper.pid != os.Getppid() || len(up[0].taken) != 2 ||
		!up[0].keeper.alive() {
		t.Fatalf("%+v", up)
	}
	// A process that is dead while we hold what looks like its connection.
	dead := exec.Command("true")
	if err := dead.Start(); err != nil {
		t.Fatal(err)
	}
	pid := dead.Process.Pid
	gone := meetWitness(t, w, script.Word{Role: script.Tool, Pid: pid, Run: "r1"})
	_ = dead.Wait()
	meetWitness(t, w, script.Word{Role: script.CLI, Pid: os.Getpid(), Run: "r2"})
	if got := w.present(script.Tool); len(got) != 0 {
		t.Errorf("a dead tool is taken for alive: %+v", got)
	}
	if got := len(w.present(script.CLI)); got != 2 {
		t.Errorf("%d CLIs are alive", got)
	}
	_ = gone.Close()
}

func TestSignalsReachNobodyElse(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s, ok := look(cmd.Process.Pid)
	if !ok || s.parent != os.Getpid() || s.dead {
		t.Fatalf("%+v, %v", s, ok)
	}
	other := s.identity
	other.start += "0"
	if err := other.kill(9); err == nil {
		t.Error("a process of another time was signalled")
	}
	if !s.alive() {
		t.Error("it is not alive")
	}
	if err := s.kill(9); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it was not killed")
	}
	if s.alive() || s.kill(9) == nil {
		t.Error("it is alive after its burial")
	}
}
