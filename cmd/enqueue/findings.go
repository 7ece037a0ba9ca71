package main

import (
	"context"
	"flag"
	"fmt"
	"net/url"

	"github.com/errand-fleet/errand/web/api"
)

func findingsCommand(t *terminal, flags *flag.FlagSet) runFunc {
	repo := flags.String("repo", "", "the findings of the reviews in this `owner/name`")
	return func(ctx context.Context, args []string) error {
		if len(args) > 0 || *repo == "" {
			return exitUsage
		}
		return show(ctx, t, "GET /api/findings?repository="+url.QueryEscape(*repo), nil, t.printAcceptance)
	}
}

// printAcceptance prints what people have done with findings.
func (t *terminal) printAcceptance(a api.Findings) {
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
