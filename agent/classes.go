package agent

// classes is what goes with each class. TestClassesAreDocumented holds docs/errors.md to it.
var classes = map[Class]struct {
	retry  Retry
	user   string // what it means for whoever asked, and what they can do
	remedy string // what whoever runs the fleet can do
}{
	ClassCLIMissing: {
		RetryNever,
		"The worker has no Claude Code CLI. An operator must install it (npm ci) or set ERRAND_CLAUDE.",
		"Run npm ci with install scripts, or set ERRAND_CLAUDE to the path of the CLI.",
	},
	ClassCLIVersion: {
		RetryNever,
		"The worker's Claude Code CLI is too old. An operator must install the pinned version (npm ci).",
		"Run npm ci, which installs the pinned version.",
	},
	ClassAuth: {
		RetryNever,
		"Authentication failed: the worker is not logged in to the model. An operator must set a valid ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN or CLAUDE_CODE_OAUTH_TOKEN.",
		"Set a valid ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN or CLAUDE_CODE_OAUTH_TOKEN, and look whether its account may use the model.",
	},
	ClassBilling: {
		RetryNever,
		"The model account has no credit left. An operator must top it up.",
		"Top up the account, or give it usage credits.",
	},
	ClassRateLimit: {
		RetryLater,
		"Rate limited: the model takes no more requests just now. Try again in a few minutes.",
		"Run fewer agents at once (ERRAND_CONCURRENCY), or raise the account's limit.",
	},
	ClassUsageLimit: {
		RetryReset,
		"The model account has reached its usage limit. Try again after it resets.",
		"Wait for the reset, or raise the plan's limit.",
	},
	ClassOverloaded: {
		RetrySoon,
		"The model could not be reached or is overloaded. Try again in a few minutes.",
		"If it lasts, look at the model's status page, at ANTHROPIC_BASE_URL, and at the way there: proxy, firewall, DNS.",
	},
	ClassModel: {
		RetryNever,
		"Model not available to this account. Choose another one.",
		"Set ERRAND_MODEL to a model of the account; if every model is missing, look at ANTHROPIC_BASE_URL.",
	},
	ClassContext: {
		RetryNever,
		"The conversation, with its files, has become too long for the model. Start a new thread.",
		"None is needed: a new thread starts afresh.",
	},
	ClassRequest: {
		RetryNever,
		"The model did not accept the request. An operator must look at the log.",
		"Read the model's own words in the log: mostly a gateway that lacks what this CLI asks for, or a setting the model does not take.",
	},
	ClassMaxTurns: {
		RetryNever,
		"The agent used up its allowed number of turns.",
		"Raise CLAUDE_CODE_MAX_TURNS, or ask for less at once.",
	},
	ClassBudget: {
		RetryNever,
		"The agent used up its budget for this task.",
		"Raise the budget, or ask for less at once.",
	},
	ClassSchema: {
		RetryNever,
		"The agent did not give its answer in the form that was asked for.",
		"Look at the schema and at the model's attempts in the log; a larger model keeps to it more often.",
	},
	ClassRefusal: {
		RetryNever,
		"The model declined to work on this. Ask in other words.",
		"None: the log has what the model's safeguards said.",
	},
	ClassSession: {
		RetryFresh,
		"The earlier conversation could not be continued. Start a new thread.",
		"None is needed: the conversation is gone or was refused, and a new one can begin.",
	},
	ClassConfig: {
		RetryNever,
		"The Claude Code CLI refused to start. An operator must look at the log.",
		"Read the CLI's last words in the log.",
	},
	ClassStart: {
		RetrySoon,
		"The worker could not start the agent just now. Try again in a few minutes.",
		"Run fewer agents at once (ERRAND_CONCURRENCY), and look at the machine's load, memory and limit of processes.",
	},
	ClassNoResult: {
		RetryResume,
		"The agent ended without giving an answer.",
		"Read the CLI's last words in the error; what it printed is also the partial answer.",
	},
	ClassKilled: {
		RetryResume,
		"The agent was killed from outside.",
		"Find out who sent the signal: mostly a tool of the agent's own that killed its parent.",
	},
	ClassOOM: {
		RetryResume,
		"The agent was killed because the worker had run out of memory.",
		"Give the worker more memory, or run fewer agents at once (ERRAND_CONCURRENCY).",
	},
	ClassProcesses: {
		RetryNever,
		"The agent was stopped because it had started more processes than a run may have. Ask for smaller steps, or an operator can raise the limit.",
		"If its tools need so many processes and threads, raise ERRAND_RUN_PROCESSES, and with it what the container or unit may have.",
	},
	ClassFrozen: {
		RetrySoon,
		"The worker stood still for a while, so its agent was stopped. Try again.",
		"Find out what held the worker up: a suspended machine, SIGSTOP, a debugger, or no memory or CPU left.",
	},
	ClassWorkspace: {
		RetryNever,
		"The working directory could not be prepared.",
		"Look at disk space, permissions and the length of TMPDIR.",
	},
	ClassInput: {
		RetryNever,
		"The request cannot be given to the agent as it stands.",
		"None: whoever asked is told what to change.",
	},
	ClassInternal: {
		RetryNever,
		"Something went wrong inside errand. The log says what.",
		"Read the worker's log; this is a mistake of errand's.",
	},
	ClassUnknown: {
		RetryNever,
		"The agent failed. The log says more.",
		"Read the log.",
	},
}
