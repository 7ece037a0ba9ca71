package transcript

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"
)

// The names are those of the CLI. It would not find a session under another one, or find two.
func TestProjectDir(t *testing.T) {
	t.Parallel()
	long := "/w/" + strings.Repeat("long/", 39)
	short := strings.ReplaceAll(long, "/", "-")
	for dir, want := range map[string]string{
		"/w/a_b-C.1": "-w-a-b-C-1",
		"/w/🚀 ü":     "-w-----",
		long + "xy":  short + "xy",
		"/w/" + strings.Repeat("long/", 40) + "é": short + "lo-va5qke",
	} {
		if got := projectDir(dir); got != "projects/"+want {
			t.Errorf("%s: %s", dir, got)
		}
	}
}

// A conversation that is there already is not overwritten.
func TestPlacedOnce(t *testing.T) {
	t.Parallel()
	config := t.TempDir()
	for i, want := range []error{nil, fs.ErrExist} {
		a := Archive{Files: []File{{Conversation, []byte(strconv.Itoa(i))}, {"tool-results/x", []byte("x")}}}
		if err := a.Place(config, config, "s", "/w"); !errors.Is(err, want) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if got, err := os.ReadFile(config + "/projects/-w/s.jsonl"); err != nil || string(got) != "0" {
		t.Errorf("%s, %v", got, err)
	}
}
