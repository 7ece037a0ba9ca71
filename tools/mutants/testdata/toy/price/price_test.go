package price

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestCheap(t *testing.T) {
	for cents, want := range map[int]bool{-1: false, 0: false, 1: true, 100: true, 101: false} {
		if Cheap(cents) != want {
			t.Error(cents)
		}
	}
}

func TestLimit(t *testing.T) {
	if !strings.Contains(Limit, "ARGV[1] == 'a'") {
		t.Error(Limit)
	}
}

// It leaves a process behind, whose ID the tool's test reads.
func TestLeaves(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sleep 3600 & echo $! >>"+os.Getenv("LEFT"))
	if err := cmd.Run(); err != nil {
		t.Error(err)
	}
}
