package api

import "testing"

func TestNamesAreInertInCSV(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"slack/U1": "slack/U1", "": "", "a=b": "a=b", "a,b\"c": "a,b\"c",
		"=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "＝1": "'＝1", " =1": "' =1", "\t=1": "' =1",
		"\r\n-1": "'  -1", "a;=1": "a =1", "a\n=1": "a =1",
	} {
		if got := escapeFormula(name); got != want {
			t.Errorf("%q became %q, want %q", name, got, want)
		}
	}
}
