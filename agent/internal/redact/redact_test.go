package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

const fakeKey = "MIIEpAIBAAKCAQEAwJ0Fq1oX3n5kT7uV2yZ8bC4dE6fG9hI0jK1lM2nO3pQ4rS5t"

func TestRedactor(t *testing.T) {
	t.Parallel()
	r := New("", "short", "a-known-secret", "a-known-secret-and-more", "secretive", "with\nnewline and \"quotes\" <>",
		"p@ss wörd", "https://host/b", "abcde7", "fghi7", "pass: ö /word+x", // six characters are a secret
		"-----BEGIN KEY-----\n"+fakeKey+"\n-----END KEY-----\n")
	token, long := "0123456789abcdefghij", strings.Repeat("Ab1", 20)
	for in, want := range map[string]string{
		"nothing to see":                               "nothing to see",
		"short stays":                                  "short stays",
		"x a-known-secret y":                           "x [redacted] y",
		"a-known-secret-and-more":                      "[redacted]",
		"a-known-secretive":                            "[redacted]", // two that overlap
		"a-known-secreta-known-secret":                 "[redacted]", // and two in a row
		`with\nnewline and \"quotes\" <>.`:             "[redacted].",
		`with\nnewline and \"quotes\" \u003c\u003e.`:   "[redacted].",
		`with\\nnewline and \\\"quotes\\\" <>.`:        "[redacted].",
		"https://u:p%40ss%20w%C3%B6rd@host/":           "https://u:[redacted]@host/",
		"?q=p%40ss+w%C3%B6rd&r":                        "?q=[redacted]&r",
		"?q=p%40ss+w%c3%b6rd&r":                        "?q=[redacted]&r",
		`"https:\/\/host\/b"`:                          `"[redacted]"`,
		"hex 612d6b6e6f776e2d736563726574.":            "hex [redacted].",
		"hex 612D6B6E6F776E2D736563726574.":            "hex [redacted].",
		"back terces-nwonk-a.":                         "back [redacted].",
		"line of a key: " + fakeKey:                    "line of a key: [redacted]",
		"-----BEGIN KEY----- other":                    "-----BEGIN KEY----- other", // is in every key
		"is abcde7, fghi7":                             "is [redacted], fghi7",
		"<pass%3A+%C3%B6+%2Fword%2Bx>":                 "<[redacted]>",
		"<pass%3A%20%C3%B6%20%2Fword%2Bx>":             "<[redacted]>",
		"<pass%3a+%c3%b6+%2fword%2bx>":                 "<[redacted]>",
		"<pass%3a%20%c3%b6%20%2fword%2bx>":             "<[redacted]>",
		"<pass:%20%C3%B6%20%2Fword+x>":                 "<[redacted]>",
		"<pass:%20%c3%b6%20%2fword+x>":                 "<[redacted]>",
		"key sk-ant-api03-AAAAAAAAAAAA.":               "key [redacted].",
		"sk-proj-" + token + "_-x":                     "[redacted]",
		"risk-proj-management":                         "risk-proj-management",
		"xoxb-123456789012-abc":                        "[redacted]",
		"ghp_" + token + " and ghs_ghs_ghs":            "[redacted] and ghs_ghs_ghs",
		"glpat-" + token + ", npm_" + long[:36]:        "[redacted], [redacted]",
		"hf_" + long[:34] + " half_" + long[:20]:       "[redacted] half_" + long[:20],
		"id AKIAIOSFODNN7EXAMPLE":                      "id [redacted]",
		"AIza" + long[:35]:                             "[redacted]",
		"aws_secret_access_key = " + long[:40]:         "aws_secret_access_key = [redacted]",
		`{\"SecretAccessKey\": \"` + long[:40] + `\"}`: `{\"SecretAccessKey\": \"[redacted]\"}`,
		"Authorization: Bearer " + token:               "Authorization: Bearer [redacted]",
		"DEK-Info: AES-128-CBC, or another, with a sentence of some length behind it": "DEK-Info: AES-128-CBC, or another, with a sentence of some length behind it",
		"BearerTokenAuthenticationFilterFactory":                                      "BearerTokenAuthenticationFilterFactory",
		"Bearer of good news":                                                         "Bearer of good news",
		"jwt eyJhbGciOiJIUzI1NiJ9." + long + "." + long + "!":                         "jwt [redacted]!",
		"https://x-access-token:" + token +
			"@github.com/o/r": "https://x-access-token:[redacted]@github.com/o/r",
		"https://hooks.slack.com/services/T0000/B0000/" + token +
			" is a hook": "https://hooks.slack.com/services/[redacted] is a hook",

		"-----BEGIN RSA PRIVATE KEY-----\n" + fakeKey + "\n" + long +
			"=\n-----END RSA PRIVATE KEY-----\nThanks.": "-----[redacted]-----END RSA PRIVATE KEY-----\nThanks.",
		`"-----BEGIN PRIVATE KEY-----\n` + long + `\n` + long + `"`: `"-----[redacted]"`,
		`     1→-----BEGIN EC PRIVATE KEY-----\n     2→` + long + `\n     3→` + long +
			`"`: `     1→-----[redacted]"`,
		"Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,3F17F5316E2BAC89\n\n" + long +
			"\n-----END": "Proc-Type: 4,ENCRYPTED\n[redacted]-----END",
		"-----BEGIN CERTIFICATE-----\n" + long: "-----BEGIN CERTIFICATE-----\n" + long,
	} {
		if got := r.String(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	if line := []byte("clean"); &r.Bytes(line)[0] != &line[0] {
		t.Error("a clean line was copied")
	}
	if got := (*Redactor)(nil).String("a-known-secret"); got != "a-known-secret" {
		t.Errorf("no redactor made it %q", got)
	}
}

// In base64 a secret looks different after each number of bytes before it. Only bits that it shares with its neighbours
// are left.
func TestRedactorInBase64(t *testing.T) {
	t.Parallel()
	r := New("the-secret-value")
	for before := range 6 {
		for after := range 4 {
			data := strings.Repeat("?", before) + "the-secret-value" + strings.Repeat("~", after)
			for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding} {
				got := r.String(e.EncodeToString([]byte(data)))
				ends := strings.Split(got, redacted)
				if len(ends) != 2 || len(ends[0]) > (before*8+5)/6 || len(ends[1]) > (after*8+5)/6+3 {
					t.Errorf("%d before, %d after: %s", before, after, got)
				}
			}
		}
	}
	header := "AUTHORIZATION: basic " +
		base64.StdEncoding.EncodeToString([]byte("x-access-token:ghs_made-while-it-run"))
	if got := r.String(header); got != "AUTHORIZATION: basic "+redacted {
		t.Errorf("the header became %q", got)
	}
}

func TestRedactedJSON(t *testing.T) {
	t.Parallel()
	r := New("a-known-secret", `"quoted"`, "1234567")
	const (
		half  = `MIIEvQIBADANBgkqMIIEvQIBADANBgkq`
		begin = `BEGIN PRIVATE KEY-----\n`
	)
	for in, want := range map[string]string{
		`{"n":1.0e3,"a":"a\"` + begin + half + half + `\n\"","b":"b"}`: `{"a":"a\"[redacted]\"","b":"b","n":1.0e3}`,
		`["` + begin + half + half + `\n\u003c/outside\u003e then"]`:   `["[redacted]\u003c/outside\u003e then"]`,
		`["` + begin + half + `\n\t\t\t\t\t\t\t\"x"]`:                  `["` + begin + half + `\n\t\t\t\t\t\t\t\"x"]`,
		`{"aws_secret_access_key": "` + half + `\/\/` + half + `"}`:    `{"aws_secret_access_key":"[redacted]"}`,
		`{"a-known-secret": [1234567, null]}`:                          `{"[redacted]":["[redacted]",null]}`,
		`{"a": "a-known-secret`:                                        `"[redacted]"`,
		`{"a": 1} `:                                                    `{"a": 1} `,
		`{"a": "a-known-secret", "a": "x"}`:                            `{"a":"x"}`,
		`[{"b": {"a": "a-known-secret", "a": 1}}]`:                     `[{"b":{"a":1}}]`,

		`{"a":1}`:                `{"a":1}`,
		`{"a":"a-known-secret"}`: `{"a":"[redacted]"}`,
		`{"quoted":1}`:           `"[redacted]"`,
		`null`:                   `null`,
		``:                       ``,
	} {
		if got := r.JSON(json.RawMessage(in)); string(got) != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}

// A cut text should not show the beginning of a longer secret.
func TestHeadOfASecret(t *testing.T) {
	t.Parallel()
	secret := "the-secret-value"
	r := New(secret)
	for before := range 60 {
		got := r.Head([]byte(strings.Repeat("x", before)+secret+strings.Repeat("y", 100)), 10)
		if strings.Contains(got, "th") || len(got) > 9+len("…") {
			t.Errorf("after %d: %q", before, got)
		}
	}
	if got := r.Head([]byte("short the-secret-value"), 40); got != "short [redacted]" {
		t.Errorf("got %q", got)
	}
}

// Neither part of a text that was cut within a secret shows much of it.
func TestPart(t *testing.T) {
	t.Parallel()
	r := New("a-known-secret")
	for _, c := range []struct{ before, text, want string }{
		{"", "It is a-known-", "It is [redacted]"},
		{"It is a-known-", "secret.", "[redacted]."},
		{"It is a-kno", "wn-secret", "[redacted]"},
		{"", "It is a-kno", "It is a-kno"},
		{"a-known-secret", " and more", " and more"},
		{"a-known-", "thing", "thing"},
		{"a-known-", "secret, a-known-", "[redacted], [redacted]"},
		{"is ghp_0123456789abcdef", "xyz and more", "[redacted] and more"},
		{"a-known-secret", "", ""},
	} {
		if got := r.Part(c.before, c.text); got != c.want {
			t.Errorf("%q after %q becomes %q, want %q", c.text, c.before, got, c.want)
		}
	}
	if got := (*Redactor)(nil).Part("a", "b"); got != "b" {
		t.Errorf("no redactor makes it %q", got)
	}
}

// A run hides both parts of a secret that was found across two texts from then on. Other runs do not. Of a given secret
// it leaves out only short words.
func TestPartsAreLearnt(t *testing.T) {
	t.Parallel()
	const (
		secret  = "kq7-Zw93vR_x2Lm8-Qy5T"
		address = "postgres://errand:Xk29dkQzR7mP@db.internal.example.com:5432/errand"
		base32  = "JBSWY3DPEHPKPXPQJBSWYQDPEHPKPXPQ"
		lower   = "qwhzkfmtbvxnrplsjdgcyqwhzkfmtbvx"
	)
	all := New(secret, address, base32, lower, "my-secret-javascript", "correct-horse-battery-staple")
	run := all.ForRun()
	for _, cut := range [][2]string{
		{"It is " + secret[:9], secret[9:] + "."},
		{"is my-secret-", "javascript."},
		{"is correct-", "horse-battery-staple."},
		{"is " + address[:22], address[22:] + " and"},
		{"is " + base32[:16], base32[16:]},
		{"is " + lower[:16], lower[16:]},
		{"is " + secret[:17], secret[17:] + "."},
	} {
		run.Part(cut[0], cut[1])
	}
	for text, want := range map[string]string{
		secret[:9] + " and " + secret[9:] + ".":     "[redacted] and [redacted].",
		`"kq7-Zw93v", R_x2Lm8 and _x2Lm8-Qy5T`:      `"[redacted]", R_x2Lm8 and _x2Lm8-Qy5T`,
		"javascript, " + secret[17:]:                "javascript, " + secret[17:],
		"my horse-battery-staple":                   "my [redacted]",
		address[:22] + ", " + address[22:]:          "[redacted], [redacted]",
		base32[:16] + " or " + base32[16:]:          "[redacted] or [redacted]",
		lower[:16] + " or " + lower[16:] + ", all.": "[redacted] or [redacted], all.",
		"the whole " + secret:                       "the whole [redacted]",
	} {
		if got := run.String(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	if got := all.String(secret[9:]); got != secret[9:] {
		t.Errorf("another run makes it %q", got)
	}
}

// Of the body of a shape, which may go on with any text, a run learns what is neither words, names nor numbers: each
// line of a key by itself, also where \n ends it.
func TestBodiesAreLearntWithoutTheirWords(t *testing.T) {
	t.Parallel()
	const (
		begin = "is BEGIN PRIVATE KEY-----\n"
		line  = "AAKCAQEAwJ0Fq1oX3n5kT7uV2yZ8bC4dE6fG9hI0jK1lM2nO3pQ4rS5tMIIEpAIB"
		words = "The 3 tests of the service pass\nnow with python3 and 20261130 others"
	)
	for cut, learnt := range map[[2]string][]string{
		{begin + fakeKey + "\n", line + "\n" + words + "."}:                            {fakeKey, line},
		{begin + fakeKey[:20], fakeKey[20:] + "\n" + line + "\n" + words}:              {fakeKey[:20], fakeKey[20:], line},
		{`is BEGIN PRIVATE KEY-----\n` + fakeKey + `\n` + line[:30], line[30:] + `\n`}: {fakeKey, line[:30], line[30:]},
		{begin + "  1→" + fakeKey + "\n  2→" + line, "\n  3→words/of/others " + words}: {fakeKey, line},
		{"is ghp_0123456789abcdef", "Thanks"}:                                          {"ghp_0123456789abcdef"},
		{"is ghp_0123456789abcdef", "TestsOfCommands of others"}:                       nil,
		{"is ghp_0123456789abcdef", "thewordsofothers0a1B2c3D4e5Fthewordsofothers"}:    {"thewordsofothers0a1B2c3D4e5Fthewordsofothers"},
	} {
		run := New().ForRun()
		run.Part(cut[0], cut[1])
		for _, part := range learnt {
			if got := run.String("a " + part + ", b"); got != "a [redacted], b" {
				t.Errorf("after %q: %q becomes %q", cut, part, got)
			}
		}
		for _, text := range []string{"BEGIN PRIVATE KEY-----", words, "words/of/others", "Thanks", "TestsOfCommands"} {
			if got := run.String(text); got != text {
				t.Errorf("after %q: %q becomes %q", cut, text, got)
			}
		}
	}
}

// An agent can write any number of keys of any length: they slow the search by a limited amount, and leave room for
// the parts of given secrets.
func TestLearntPartsAreBounded(t *testing.T) {
	t.Parallel()
	const secret = "kq7-Zw93vR_x2Lm8-Qy5T"
	for _, lines := range []int{1, 200} {
		run := New(secret).ForRun()
		before := len(run.known.Load().all)
		for i := range 100 {
			var part strings.Builder
			for n := range lines {
				fmt.Fprintf(&part, "a1B2c3D4e5F%dg%dh\n", i, n)
			}
			run.Part("BEGIN PRIVATE KEY-----\n"+strings.Repeat("x", 48), part.String())
		}
		if n := len(run.known.Load().all) - before; n == 0 || n > 500 {
			t.Errorf("%d forms of parts with %d lines are learnt", n, lines)
		}
		run.Part("It is "+secret[:9], secret[9:]+".")
		if got := run.String(secret[:9] + " and " + secret[9:]); got != "[redacted] and [redacted]" {
			t.Errorf("after that, a given secret's parts are %q", got)
		}
	}
}

// A text is open from where a secret may begin or go on.
func TestOpenEnd(t *testing.T) {
	t.Parallel()
	r := New("a-known-secret")
	for text, want := range map[string]string{
		"Words.": "", "a-known-secret.": "", "It is a-kno": "a-kno", "is ghp_0123456789abcdef": "ghp_0123456789abcdef",
		"ghp_0123": "ghp_0123", "ghp_0123456789abcdef and a-known-secret.": "",
	} {
		if got := r.Open(text); got != want {
			t.Errorf("%q is open from %q, want %q", text, got, want)
		}
	}
}

// plainRedact does what a Redactor promises in the plainest way: each place of text is compared with each form of a
// secret, and each shape.
func plainRedact(known []string, text string) string {
	hidden := make([]bool, len(text))
	mark := func(from, to int) {
		for i := from; i < to; i++ {
			hidden[i] = true
		}
	}
	in := func(i int, set charset) bool { return i < len(text) && setsOf[text[i]]&set != 0 }
	for i := range len(text) {
		for _, form := range known {
			if strings.HasPrefix(text[i:], form) {
				mark(i, i+len(form))
			}
		}
		for _, s := range shapes {
			if !strings.HasPrefix(text[i:], s.text) {
				continue
			}
			from, body := i, i+len(s.text)
			if s.names {
				for n := 0; n < longestGap && in(body, marks); n++ {
					body++
				}
				from = body
			}
			to := body
			for in(to, s.body) {
				to++
			}
			if to-body >= s.least {
				mark(from, to)
			}
		}
	}
	var b strings.Builder
	for i := range len(text) {
		switch {
		case !hidden[i]:
			b.WriteByte(text[i])
		case i == 0 || !hidden[i-1]:
			b.WriteString(redacted)
		}
	}
	return b.String()
}

// The sets are written down in one place only; this is what they were meant to be.
func TestCharsets(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]charset{
		"A": alnum | upper | dashed | dotted | base64Std | armour,
		"7": alnum | upper | dashed | dotted | base64Std | armour, "z": alnum | dashed | dotted | base64Std | armour,
		"_": dashed | dotted, "-": dashed | dotted, ".": dotted, "+": dotted | base64Std | armour, "=": armour | marks,
		" ": armour | marks, "\\": armour | marks, "\n": armour, "\"": marks, "'": marks, "{": 0, "\x00": 0, "@": 0,
	} {
		if got := setsOf[text[0]]; got != want {
			t.Errorf("%q is in %b, want %b", text, got, want)
		}
	}
	for _, s := range shapes {
		least := len(s.text) + min(s.least, 1)
		if least < shortest || len(s.text) < gram {
			t.Errorf("%s is too short for the filter", s.text)
		}
	}
}

var fuzzSecrets = []string{
	"a-known-secret", "a-known-secret-and-more", "secret-a-known", "-known-b", "known-",
	"line one of two\nline two of two",
}

// Bodies of one set are measured once where they overlap, and only there.
func TestBodies(t *testing.T) {
	t.Parallel()
	var known bodies
	text := []byte("abcd!efgh!ij")
	for _, c := range []struct{ at, want int }{{6, 9}, {8, 9}, {9, 9}, {2, 4}, {3, 4}, {10, 12}} {
		if got := known.end(text, alnum, c.at); got != c.want {
			t.Errorf("a body that reaches to %d ends at %d, want %d", c.at, got, c.want)
		}
	}
}

// fuzzParts are what texts are made of, so that secrets, halves of them, and what looks like them are common; known is
// the forms of fuzzSecrets.
func fuzzParts() (parts, known []string) {
	parts = []string{
		"a-known-secret", "secret-a-known", "-and-more", "a-kn", "own-secret", " ", "\n", `\n`, "-----", "=", ": ",
		`\"`, "→", "é", "\xff",
		"0123456789abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "_", "-", ".", "/",
	}
	for _, s := range shapes {
		parts = append(parts, s.text, s.text[:len(s.text)/2], s.text[1:])
	}
	for _, s := range fuzzSecrets {
		known = append(known, Forms(s)...)
	}
	return append(parts, known...), known
}

// FuzzRedactor holds the redactor, and a stream of it wherever the text is split, against plainRedact. Of the recipe
// each byte adds a part to the text, the last ones a byte each; cuts says how long the pieces are.
func FuzzRedactor(f *testing.F) {
	r := New(fuzzSecrets...)
	parts, known := fuzzParts()
	f.Add([]byte("recipe"), "plain a-known-secret text", []byte{1, 2, 3})
	f.Add([]byte{0, 2, 5, 0}, "", []byte{1})
	f.Add([]byte{}, "sk-ant-sk-ant-aaaaaaaaa-known-secret ghp_0123456789012345ghp_", []byte{5, 1, 9})
	f.Fuzz(func(t *testing.T, recipe []byte, text string, cuts []byte) {
		if len(recipe) > 100 || len(text) > 2000 {
			return
		}
		for _, n := range recipe {
			text += parts[int(n)%len(parts)]
		}
		want := plainRedact(known, text)
		if got := r.String(text); got != want {
			t.Fatalf("%q\nbecame %q\nwant   %q", text, got, want)
		}
		if got := inPieces(r, text, cuts); got != want {
			t.Fatalf("%q in pieces of %d\nbecame %q\nwant   %q", text, cuts, got, want)
		}
	})
}

// inPieces is text as a stream shows it. The memory of the pieces is used again, as a reader's is.
func inPieces(r *Redactor, text string, cuts []byte) string {
	var got bytes.Buffer
	s, buf := r.Stream(), make([]byte, 0, len(text))
	for i := 0; len(text) > 0; i++ {
		n := len(text)
		if len(cuts) > 0 {
			n = min(n, int(cuts[i%len(cuts)]))
		}
		if i > 1000 { // all cuts are 0
			n = len(text)
		}
		buf = append(buf[:0], text[:n]...)
		text = text[n:]
		got.Write(s.Write(buf))
		clear(buf)
	}
	got.Write(s.Flush())
	return got.String()
}

func TestRedactStream(t *testing.T) {
	t.Parallel()
	r := New(fuzzSecrets...)
	parts, known := fuzzParts()
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		var text strings.Builder
		for range rnd.IntN(12) {
			text.WriteString(parts[rnd.IntN(len(parts))])
		}
		want := plainRedact(known, text.String())
		for _, cuts := range [][]byte{{1}, {2, 7}, {byte(rnd.IntN(30)), byte(rnd.IntN(9)), 1}} {
			if got := inPieces(r, text.String(), cuts); got != want {
				t.Fatalf("%q in pieces of %d\nbecame %q\nwant   %q", text.String(), cuts, got, want)
			}
		}
	}
}

// A stream shows at once what cannot be the beginning of a secret, and never keeps more than what decides.
func TestRedactStreamHoldsBackLittle(t *testing.T) {
	t.Parallel()
	s := New("a-known-secret").Stream()
	for _, c := range []struct{ piece, want string }{
		{"Hello, a", "Hello, "},
		{"-known-", ""},
		{"secre", ""},
		{"cy a-known-secret", "a-known-secrecy [redacted]"},
		{" ghp_0123456789", " "},
		{"abcdef", redacted},
		{strings.Repeat("x", 1<<20), ""}, // its body goes on, and is not kept
		{".", "."},
		{"-----BEGIN RSA PRIVATE KEY-----\n" + fakeKey, "-----" + redacted},
		{fakeKey + "\n", ""},
		{"!", "!"},
	} {
		if got := string(s.Write([]byte(c.piece))); got != c.want {
			t.Errorf("after %.20q: %q, want %q", c.piece, got, c.want)
		}
		if len(s.held) > 100 {
			t.Errorf("after %.20q: %d bytes are held back", c.piece, len(s.held))
		}
	}
	for _, text := range []string{"a-known", "a-known-secret", "a-known-secret"} { // each with a mark of its own
		got := string(s.Write([]byte(text)))
		if got += string(s.Flush()); got != strings.Replace(text, "a-known-secret", redacted, 1) {
			t.Errorf("%s becomes %q", text, got)
		}
	}
}

// Text in pieces becomes as plain as the whole, wherever it is split.
func TestPlainStream(t *testing.T) {
	t.Parallel()
	text := "\x1b[31mred\x1b[0m \x1b]0;title\a\x1b]8;;x\x1b\\\x1b(Bx\ttab\x00\xff\x7f\r\n\u009b31m\u202e wörter\rback\x1b[\x1bq\x1b"
	want := string(Plain([]byte(text)))
	for first := range len(text) + 1 {
		for second := first; second <= len(text); second++ {
			var p PlainStream
			var got []byte
			for _, piece := range []string{text[:first], text[first:second], text[second:]} {
				got = append(got, p.Write([]byte(piece))...)
			}
			if got = append(got, p.Flush()...); string(got) != want {
				t.Fatalf("split at %d and %d: %q, want %q", first, second, got, want)
			}
		}
	}
	if got := string(Plain([]byte("a\xffb\ufffdc"))); got != `a\xffb`+"\ufffdc" {
		t.Errorf("a byte that is no text becomes %q", got)
	}
	var p PlainStream
	endless := p.Write([]byte("\x1b]0;" + strings.Repeat("x", 2*longestSequence)))
	if len(endless) < longestSequence {
		t.Errorf("only %d bytes of an endless sequence are shown", len(endless))
	}
}
