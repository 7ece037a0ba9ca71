package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/errand-fleet/errand/e2e/chaos/script"
)

// life is one process of a run, as the witness knows it.
type life struct {
	identity
	role   string // script.CLI or script.Tool
	run    string
	dir    string
	keeper identity // of a CLI: its parent when it said hello
	worker int      // pid of the keeper's parent then
	taken  []taken
	start  time.Time
	end    time.Time // zero while it is alive
}

// taken is a message that was taken up.
type taken struct {
	token string
	at    time.Time
}

// over reports whether the process is dead at a time.
func (l *life) over(at time.Time) bool { return !l.end.IsZero() && !l.end.After(at) }

// witness hears from the processes of all runs. One is alive for as long as its connection is open.
type witness struct {
	ln  net.Listener
	now func() time.Time

	mu    sync.Mutex
	lives []*life
	seen  map[string]int // how often each token was taken up
	conns map[net.Conn]bool
}

func newWitness() (*witness, error) {
	ln, err := listen()
	if err != nil {
		return nil, fmt.Errorf("start witness: %w", err)
	}
	w := &witness{ln: ln, now: time.Now, seen: map[string]int{}, conns: map[net.Conn]bool{}}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go w.hear(c)
		}
	}()
	return w, nil
}

func (w *witness) addr() string { return w.ln.Addr().String() }

// close lets go of everybody: a process that is still there ends then.
func (w *witness) close() {
	_ = w.ln.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		_ = c.Close()
	}
}

// hear stays with one process to its end.
func (w *witness) hear(c net.Conn) {
	w.mu.Lock()
	w.conns[c] = true
	w.mu.Unlock()
	var l *life
	in := bufio.NewReader(c)
	for {
		line, err := in.ReadBytes('\n')
		var word script.Word
		if err == nil {
			err = json.Unmarshal(line, &word)
		}
		if err != nil {
			break
		}
		reply := script.Reply{}
		if l == nil {
			l = w.meet(word)
		} else if word.Token != "" {
			reply.Before = w.note(l, word.Token)
		}
		answer, _ := json.Marshal(reply) // a number
		if _, err := c.Write(append(answer, '\n')); err != nil {
			break
		}
	}
	_ = c.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, c)
	if l != nil && l.end.IsZero() {
		l.end = w.now()
	}
}

// meet registers a process. Those that the kernel says are dead by now have died before this one began, even if no
// one has read the end of
// their connections yet.
func (w *witness) meet(word script.Word) *life {
	self, _ := look(word.Pid) // it waits for our answer, so it is there
	l := &life{identity: self.identity, role: word.Role, run: word.Run, dir: word.Dir}
	if word.Role == script.CLI {
		keeper, _ := look(word.Parent)
		l.keeper, l.worker = keeper.identity, keeper.parent
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	l.start = w.now()
	for _, other := range w.lives {
		if other.end.IsZero() && !other.alive() {
			other.end = l.start
		}
	}
	w.lives = append(w.lives, l)
	return l
}

// note registers the reception of a message and returns the number of earlier ones.
func (w *witness) note(l *life, token string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	l.taken = append(l.taken, taken{token, w.now()})
	w.seen[token]++
	return w.seen[token] - 1
}

// all is everybody so far, as copies, in order of their beginning.
func (w *witness) all() []life {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := make([]life, len(w.lives))
	for i, l := range w.lives {
		list[i] = *l
		list[i].taken = slices.Clone(l.taken)
	}
	return list
}

// present are those that are alive, of one role.
func (w *witness) present(role string) []life {
	return slices.DeleteFunc(w.all(), func(l life) bool { return !l.end.IsZero() || l.role != role })
}
