package assemble

import (
	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/web"
)

// configuration returns what the console shows of the configuration. It contains no secret.
func configuration(c config.Config) *web.Configuration {
	shown := &web.Configuration{File: c.Paths.File, Digest: c.Digest(), Tables: []web.Table{}}
	for _, s := range c.Routing.Sections() {
		shown.Tables = append(shown.Tables, web.Table{Title: s.Key, Columns: s.Columns, Rows: s.Rows})
	}
	for _, settings := range c.ByGroup() {
		group := web.SettingGroup{Title: settings[0].Group}
		for _, s := range settings {
			one := web.Setting{Name: s.Name, Value: s.Value, Origin: "default", About: s.Brief()}
			switch {
			case s.Given:
				one.Origin = "environment"
			case s.Value == "":
				one.Origin = "not set"
			case s.Default == "":
				one.Origin = "computed"
			}
			if s.Secret && s.Value != "" {
				one.Value = "set, hidden"
			}
			group.Settings = append(group.Settings, one)
		}
		shown.Groups = append(shown.Groups, group)
	}
	return shown
}
