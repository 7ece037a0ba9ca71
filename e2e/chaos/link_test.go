package main

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"
)

// echo is a server that says everything back.
func echo(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
		}
	}()
	return ln.Addr().String()
}

func TestLinkHoldsBackWhatIsSentWhileItIsCut(t *testing.T) {
	t.Parallel()
	l, err := newLink()
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	l.aim(echo(t))
	c, err := net.Dial("tcp", l.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in := bufio.NewReader(c)
	say := func(line string) {
		t.Helper()
		if _, err := c.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	say("one")
	if line, err := in.ReadString('\n'); line != "one\n" {
		t.Fatalf("%q, %v", line, err)
	}
	l.cut()
	say("two")
	_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if line, err := in.ReadString('\n'); err == nil {
		t.Fatalf("through a cut link came %q", line)
	}
	_ = c.SetReadDeadline(time.Time{})
	l.repair()
	if line, err := in.ReadString('\n'); line != "two\n" {
		t.Fatalf("after the repair: %q, %v", line, err)
	}
}

func TestLinkFollowsItsServer(t *testing.T) {
	t.Parallel()
	l, err := newLink()
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	l.aim("127.0.0.1:1") // no server
	c, err := net.Dial("tcp", l.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Fatal("it stays open without a server")
	}
	l.aim(echo(t))
	d, err := net.Dial("tcp", l.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	_, _ = d.Write([]byte("x"))
	if _, err := d.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}
