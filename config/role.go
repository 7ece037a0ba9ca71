package config

// Role is what the program is that loads the configuration. It decides what may be missing, nothing else: a value that is there is
// checked for every role.
type Role string

// The roles.
const (
	RoleWorker     Role = "worker"     // drains the queues: needs Redis and the model
	RoleFrontdoor  Role = "frontdoor"  // `enqueue serve`: needs Redis and a console token
	RoleStandalone Role = "standalone" // both in one process: needs the model, brings a Redis and a token if none is given
	RoleClient     Role = "client"     // the command line: needs Redis, or a console token to go by HTTP
)

// runs reports whether the role starts the CLI.
func (r Role) runs() bool { return r == RoleWorker || r == RoleStandalone }
