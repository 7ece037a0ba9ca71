package slack

import "testing"

// Only mentions of the user count, outside quotes.
func TestMentionsOfAUser(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"": 0, "<@U1> and <@U2>": 1, "<@U2> <@U3>": 0, "<@U1> <@U1>": 2, "`<@U1>`": 0,
	} {
		if got := mentions(text, "U1"); got != want {
			t.Errorf("%q: %d", text, got)
		}
		if got := mentions(text, ""); got != 0 {
			t.Errorf("%q: %d mentions of nobody", text, got)
		}
	}
}
