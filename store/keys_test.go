package store

import (
	"os"
	"regexp"
	"testing"
)

// Every key is documented for operators.
func TestKeysAreDocumented(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("keys.go")
	if err != nil {
		t.Fatal(err)
	}
	docs, err := os.ReadFile("../docs/keys.md")
	if err != nil {
		t.Fatal(err)
	}
	keys := regexp.MustCompile(`(?m)^//\t<prefix>(\S+(?: <\w+>)?)`).FindAllSubmatch(source, -1)
	if len(keys) == 0 {
		t.Fatal("keys.go lists none")
	}
	for _, key := range keys {
		if !regexp.MustCompile("`" + regexp.QuoteMeta(string(key[1])) + "`").Match(docs) {
			t.Errorf("docs/keys.md does not have %s", key[1])
		}
	}
}
