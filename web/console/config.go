package console

import (
	"net/http"

	"github.com/errand-fleet/errand/web/internal/view"
)

// configView is the page of the configuration.
type configView struct {
	view.ConfigReport
	OnlySet bool // without settings that have their defaults
}

// configPage shows what is in force, with problems first.
func (c *Console) configPage(w http.ResponseWriter, r *http.Request) error {
	found, err := c.view.Configured(r.Context())
	if err != nil {
		return err
	}
	return c.out.Page(w, r, http.StatusOK, "config", configView{found, !r.URL.Query().Has("all")})
}

// Sections returns the groups of settings to show.
func (v configView) Sections() []view.SettingGroup {
	if !v.OnlySet {
		return v.Groups
	}
	var groups []view.SettingGroup
	for _, g := range v.Groups {
		var given []view.Setting
		for _, s := range g.Settings {
			if s.Given() {
				given = append(given, s)
			}
		}
		if len(given) > 0 {
			groups = append(groups, view.SettingGroup{Title: g.Title, Settings: given})
		}
	}
	return groups
}
