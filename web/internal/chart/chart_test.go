package chart

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestBars(t *testing.T) {
	t.Parallel()
	c := Bars{
		ID: "ended", Title: "Ended tasks by hour", Column: "Hour",
		Series: []Series{{"done", "done"}, {"failed", "failed"}},
		Bars: []Bar{
			{Label: "10:00", Tick: "10", Values: []float64{3, 1}},
			{Label: "<11>", Tick: "11", URL: "/?a=1&b=2", Values: []float64{0, 0}},
			{Label: "12:00", Values: []float64{0, 5}},
		},
	}
	got := drawn(t, c)
	for _, want := range []string{
		// The scale ends at 5, so 3 of 5 are 42 of the plot's 70 percent.
		`<rect class="done" x="3.33%" y="42.00%" width="26.67%" height="42.00%"/>`,
		`<rect class="failed" x="3.33%" y="28.00%" width="26.67%" height="14.00%"/>`,
		`aria-labelledby="ended-title ended-desc"`, `<title id="ended-title">Ended tasks by hour</title>`,
		`<desc id="ended-desc">`,
		"<title>10:00\ndone: 3\nfailed: 1</title>", `<th scope="row">10:00</th><td>3</td><td>1</td>`,
		`<a href="/?a=1&amp;b=2">&lt;11&gt;</a>`, `<span class="key failed">failed</span>`, `y="98%">11</text>`,
		`y="9%">5</text>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if n := strings.Count(got, "<rect"); n != 6 { // the areas of three bars, and three parts
		t.Errorf("%d rectangles", n)
	}
	if strings.Contains(got, "style") { // the policy of the pages forbids it
		t.Error("an inline style")
	}
	c = Bars{ID: "cost", Title: "Cost", Series: []Series{{"cost", "cost"}}, Format: func(v float64) string {
		return fmt.Sprintf("$%.2f", v)
	}}
	for i := range 30 {
		c.Bars = append(c.Bars, Bar{Label: fmt.Sprint(i), Tick: fmt.Sprint(i), Values: []float64{float64(i) / 100}})
	}
	got = drawn(t, c)
	if n := strings.Count(got, `y="98%"`); n != 6 {
		t.Errorf("%d ticks", n)
	}
	if !strings.Contains(got, "<td>$0.29</td>") || strings.Contains(got, "class=\"key") {
		t.Error(got)
	}
	drawn(t, Bars{ID: "none"})
}

func TestScale(t *testing.T) {
	t.Parallel()
	for value, want := range map[float64]float64{
		0: 1, 0.025: 0.03, 1: 1, 2: 2, 4: 4, 7: 8, 10: 10, 11: 15, 16: 20, 350: 400,
	} {
		if got := (Bars{Bars: []Bar{{Values: []float64{value}}}}).Max(); got != want {
			t.Errorf("%v: %v, want %v", value, got, want)
		}
	}
}

// drawn returns the chart's HTML, which is well-formed.
func drawn(t *testing.T, c Bars) string {
	t.Helper()
	html, err := c.HTML()
	if err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(string(html)))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return string(html)
		} else if err != nil {
			t.Fatalf("%v in %s", err, html)
		}
	}
}
