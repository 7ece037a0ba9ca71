package agent

import "testing"

// A session whose data is damaged should fail its check and hold nothing.
func TestDamagedSession(t *testing.T) {
	t.Parallel()
	whole := Session{ID: "s", Data: []byte("{\"uuid\":\"the-prompt\"}\n")}
	if !whole.Holds("the-prompt") || whole.Check() != nil {
		t.Fatalf("holds the prompt %t; %v", whole.Holds("the-prompt"), whole.Check())
	}
	for name, data := range map[string]string{"half a header": "\x1f\x8b", "half an archive": "\x1f\x8b\x08\x00"} {
		s := Session{ID: "s", Data: []byte(data)}
		if s.Check() == nil || s.Holds("the-prompt") || s.Holds("") {
			t.Errorf("%s: check %v, holds %t", name, s.Check(), s.Holds("the-prompt"))
		}
	}
}
