package main

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"
)

func findingsCommand(t *terminal) *cobra.Command {
	c := &cobra.Command{Use: "findings", Short: "Show what people did with the findings of reviews"}
	repo := c.Flags().String("repo", "", "the findings of the reviews in this `owner/name`")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *repo == "" {
			return usageError{errors.New("missing --repo OWNER/NAME")}
		}
		return show(c.Context(), t, "GET /api/findings?repository="+url.QueryEscape(*repo), nil, t.printAcceptance)
	}
	return c
}

// acceptance is the response of GET /api/findings.
type acceptance struct {
	Kinds []struct {
		Kind                      string
		Fixed, Dismissed, Ignored int
	}
}

// printAcceptance prints what people have done with findings.
func (t *terminal) printAcceptance(a acceptance) {
	if len(a.Kinds) == 0 {
		printf(t.stderr, "no findings counted for this repository\n")
		return
	}
	list := newTable("KIND", "FIXED", "DISMISSED", "IGNORED")
	for _, k := range a.Kinds {
		list.add(k.Kind, fmt.Sprint(k.Fixed), fmt.Sprint(k.Dismissed), fmt.Sprint(k.Ignored))
	}
	list.print(t.stdout)
}
