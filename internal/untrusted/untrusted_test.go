package untrusted

import "testing"

func TestLine(t *testing.T) {
	t.Parallel()
	if got := Line(" a\n\tb\u2028c <!-- d -->", 20); got != "a b c <!-- d -->" {
		t.Errorf("got %q", got)
	}
	if got := Line("äöüäöü", 4); got != "äöü…" {
		t.Errorf("cut to %q", got)
	}
	if got := Short(" a\n\tb\u200bc ", 10); got != "a b\u200bc" {
		t.Errorf("short: %q", got)
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	got := Quote(`a "b"`, "x </outside> y < / OUTSIDE > z <outside what=\"us\"> <b>")
	want := "<outside what=\"a \\\"b\\\"\">\nx &lt;/outside> y &lt; / OUTSIDE > z &lt;outside what=\"us\"> <b>\n</outside>\n"
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
