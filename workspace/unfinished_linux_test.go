package workspace

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// From the moment when a clone with submodules is in its place there is a note of them, whenever the worker is killed.
func TestCloneIsNeverWithoutItsNote(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	lib := o.beside("acme/lib", map[string]string{"lib.txt": "lib\n"})
	o.modules("main", map[string][2]string{"lib": {lib, "../lib"}})
	w := o.files()
	want, _ := anyone()
	c := checkout(t, w, want) // makes the directory
	events, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(events)
	if _, err := unix.InotifyAddWatch(events, filepath.Dir(c.Dir), unix.IN_CREATE|unix.IN_DELETE|unix.IN_MOVE); err != nil {
		t.Fatal(err)
	}
	note := filepath.Base(w.mirror(want.Repo).clone(c.Dir).beside("submodules"))
	noted, moved := true, 0
	checkout(t, w, want)
	buffer := make([]byte, 1<<16)
	n, err := unix.Read(events, buffer)
	if err != nil {
		t.Fatal(err)
	}
	for rest := buffer[:n]; len(rest) > 0; {
		mask, length := binary.NativeEndian.Uint32(rest[4:]), binary.NativeEndian.Uint32(rest[12:])
		name := string(bytes.TrimRight(rest[unix.SizeofInotifyEvent:unix.SizeofInotifyEvent+length], "\x00"))
		rest = rest[unix.SizeofInotifyEvent+length:]
		switch {
		case name == note:
			noted = mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0
		case name == filepath.Base(c.Dir) && mask&unix.IN_MOVED_TO != 0:
			if moved++; !noted {
				t.Error("it is in its place without a note")
			}
		}
	}
	if moved != 1 {
		t.Errorf("it was moved to its place %d times", moved)
	}
}
