package github

import "testing"

// A command is the first word or the first two, and has words behind it only if it takes some. What counts as a word, a
// mention and code is tested in internal/words.
func TestCommandsOfRemarks(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]struct {
		word, rest string
		mistaken   bool
	}{
		"/review":                      {cmdReview, "", false},
		"@errand-bot /review":          {cmdReview, "", false},
		"/review full please\nand web": {cmdReviewFull, "please\nand web", false},
		"/review\u00a0fully":           {cmdReview, "fully", false},
		"/fix\n\nonly the tests":       {cmdFix, "only the tests", false},
		"/fix\n\n    make test":        {cmdFix, "make test", false},
		"/approve always":              {cmdAlways, "", false},
		"/approve now":                 {"", "/approve now", true},
		"/Review":                      {"", "/Review", true},
		"/lgtm":                        {"", "/lgtm", false},
		"@errand-bot /lgtm":            {"", "/lgtm", true},
		"@errand-bot /etc/hosts":       {"", "/etc/hosts", false},
		"@errand-bot / x":              {"", "/ x", false},
		"@errand-bot -- x":             {"", "-- x", false},
		"    /review\n\nis so":         {"", "    /review\n\nis so", false},
		"Please\n/review":              {"", "Please\n/review", false},
		"why?":                         {"", "why?", false},
	} {
		s := readRemark(body, "errand-bot[bot]")
		if s.word != want.word || s.rest != want.rest || s.mistaken != want.mistaken {
			t.Errorf("%q: %q, %q, %t", body, s.word, s.rest, s.mistaken)
		}
	}
}
