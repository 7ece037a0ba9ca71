package findings

import "testing"

func TestNotice(t *testing.T) {
	t.Parallel()
	old := Known{Finding: gone, Status: Open, Comment: 41}
	full := Plan{
		Summary: []Finding{exact, vague, general, odd}, StillOpen: []Known{old},
		Fixed: []Known{{Finding: vague, Status: Fixed}}, Below: 2,
	}
	golden(t, "notice.full", full.Notice("It does what it says, but for large totals.", page))
	golden(t, "notice.nothing", Plan{}.Notice("Nothing to report.", page))
	for _, row := range []struct {
		p    Plan
		news bool
	}{
		{Plan{}, false},
		{Plan{StillOpen: []Known{old}, Gone: []Known{old}, Below: 1}, false},
		{full, true},
		{Plan{Fixed: []Known{old}}, true},
		{Plan{Inline: []Finding{exact}}, true},
	} {
		if row.p.News() != row.news {
			t.Errorf("%+v has news: %t", row.p, row.p.News())
		}
	}
}
