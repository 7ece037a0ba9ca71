package script

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOrdersSurviveAPrompt(t *testing.T) {
	t.Parallel()
	want := []Orders{
		{Token: Token(7), Work: 1500 * time.Millisecond, Crash: true, Big: true},
		{Token: Token(12345), Work: time.Second},
		{Token: Token(8), Tool: true, Stubborn: true, Ask: true},
	}
	text := "Please: " + want[0].String() + "\n" + want[1].String() + ", and\n\n" + want[2].String() + " toolbox"
	text = text[:len(text)-len(" toolbox")] + "\nbigger"
	if diff := cmp.Diff(want[:1], Parse(text)[:1]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{Token(7), Token(12345), Token(8)}, Tokens(text)); diff != "" {
		t.Error(diff)
	}
	if got := Parse(want[2].String() + " toolbox"); len(got) != 1 || got[0] != want[2] {
		t.Errorf("with a word behind it: %+v", got)
	}
}

func TestAnswersAreToldFromOtherWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		tokens []string
		ok     bool
	}{
		"Stopped in the console. Ask again to continue.": {nil, false},
		"The agent was killed. tok00001":                 {nil, false},
		Answer([]string{Token(1)}):                       {[]string{Token(1)}, true},
		Answer([]string{Token(1)}) + "\n\n" + Answer([]string{Token(2), Token(3)}) +
			" of tok00009": {[]string{Token(1), Token(2), Token(3)}, true},
	} {
		tokens, ok := Answers(text)
		if diff := cmp.Diff(want.tokens, tokens); diff != "" || ok != want.ok {
			t.Errorf("%q: %v %s", text, ok, diff)
		}
	}
}
