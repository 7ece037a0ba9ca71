package agent

import (
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/transcript"
)

// A session for another machine has no secret, and does not resume in a mode that asks nobody. What a text says of modes
// stays.
func TestPortable(t *testing.T) {
	t.Parallel()
	const said = `{"text":"\"permissionMode\":\"bypassPermissions\""}`
	s := Session{Data: []byte(`{"permissionMode":"bypassPermissions","text":"hunter-2-secret"}` + "\n" +
		`{"type":"permission-mode","permissionMode": "acceptEdits"}` + "\n" + said + "\n")}
	data, err := s.Portable(NewRedactor("hunter-2-secret"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := transcript.Unpack(data)
	want := `{"permissionMode":"default","text":"[redacted]"}` + "\n" +
		`{"type":"permission-mode","permissionMode":"default"}` + "\n" + said + "\n"
	if err != nil || string(a.Lines()) != want {
		t.Errorf("%s, %v", a.Lines(), err)
	}
	if _, err := (Session{Data: []byte("\x1f\x8bnone")}).Portable(nil); err == nil ||
		!strings.Contains(err.Error(), "read session") {
		t.Errorf("damaged: %v", err)
	}
}
