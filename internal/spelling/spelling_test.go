package spelling

import "testing"

func TestDistance(t *testing.T) {
	t.Parallel()
	for words, want := range map[[2]string]int{
		{"", ""}: 0, {"a", ""}: 1, {"", "ab"}: 2, {"kitten", "sitting"}: 3, {"limt", "limit"}: 1, {"ab", "ba"}: 1,
		{"list", "silt"}: 2,
	} {
		if got := Distance(words[0], words[1]); got != want {
			t.Errorf("from %q to %q: %d, want %d", words[0], words[1], got, want)
		}
	}
}
