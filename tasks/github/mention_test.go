package github

import "testing"

func TestCutMention(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, rest string
		ok         bool
	}{
		{"@errand why?", "why?", true},
		{"@errand: why?", "why?", true},
		{"@Errand, why?", "why?", true},
		{"@errand[bot] why?", "why?", true},
		{"Could you, @errand, look? And @errand too.", "Could you, look? And too.", true},
		{"(@errand)", "()", true},
		{"one\n@errand two", "one\ntwo", true},
		{"@errand", "", true},
		{"errand, why?", "errand, why?", false},
		{"@errands why?", "@errands why?", false},
		{"@errand-two why?", "@errand-two why?", false},
		{"@other why?", "@other why?", false},
		{"mail@errand why?", "mail@errand why?", false},
		{"@errand/team why?", "@errand/team why?", false},
		{"`@errand` is how one asks", "`@errand` is how one asks", false},
		{"``x ` @errand`` is how", "``x ` @errand`` is how", false},
		{"> @errand why?\n\nI wonder too.", "> @errand why?\n\nI wonder too.", false},
		{"> @errand why?\n\n@errand because?", "> @errand why?\n\nbecause?", true},
		{"```\n@errand why?\n```\nsee", "```\n@errand why?\n```\nsee", false},
		{"- ```\n  @errand why?\n  ```\n", "- ```\n  @errand why?\n  ```", false},
		{"~~~\n@errand why?", "~~~\n@errand why?", false},
		{"```\ncode\n```\n@errand why?", "```\ncode\n```\nwhy?", true},
	} {
		for _, login := range []string{"errand", "errand[bot]"} {
			if rest, ok := cutMention(c.text, login); rest != c.rest || ok != c.ok {
				t.Errorf("%q: %q %t, want %q %t", c.text, rest, ok, c.rest, c.ok)
			}
		}
	}
	if _, ok := cutMention("@ nobody", ""); ok {
		t.Error("someone without a name was mentioned")
	}
}
