package store

// Every key, with its type, its lifetime and the file that writes it. <prefix> is Config.Prefix, "errand:" by default.
//
//	key                       type    lives                        what
//	<prefix>task:<id>         hash    Retention once posted        the record (submit, claim, transition, outbox)
//	<prefix>events:<id>       stream  Retention once posted        field data = one event, field end = the end mark (events, claim)
//	<prefix>questions:<id>    hash    Retention once posted        q:<key> = a question, f:<key> = the fence of the asking claim,
//	                                                               a:<key> = its answer, s:<key> = the nonce of the call that used
//	                                                               the key first (questions)
//	<prefix>spent:<id>        string  Retention                    a message used as an answer: "<id> <nonce>" of the asking
//	                                                               task and of the call that answered (questions)
//	<prefix>pictures:<id>     hash    SessionTTL since the save,   <n> = the data of the n-th picture that came with the task (pictures)
//	                                  Retention once posted
//	<prefix>tasks             zset    trimmed by submit            all IDs, score 0: sorted by text, which is by time (submit)
//	<prefix>live              zset    while not ended              the IDs that have not ended, score 0 (submit, transition, claim)
//	<prefix>running           zset    while it runs                the IDs that run; score = the fence (claim, silent; every step that
//	                                                               ends the run removes it)
//	<prefix>leader:<name>     string  as long as its holder asked  "<nonce> <term>" of the process that leads (workers)
//	<prefix>joined            set     while it has members         the IDs that are absorbed (mailbox; likewise)
//	<prefix>waiting:<thread>  zset    while it has members         the thread's IDs that wait or run; score = the microseconds the ID
//	                                                               begins with, 0 for the running one (submit, claim, transition)
//	<prefix>claim:<thread>    string  ClaimTTL                     "<fence> <id> <nonce>" of the holder (claim, keep); "lock <nonce>" of
//	                                                               a ThreadLock, for its ttl (threads)
//	<prefix>cap:<scope>       zset    ClaimTTL + Outage since the  the IDs that run and count in the scope; score = when the lease ends
//	                                  last refresh of any          (claim, keep; every step that ends the run removes it)
//	<prefix>line:<scope>      zset    1 h since the last refusal   waiting IDs that were refused for the scope's cap; score = the microseconds
//	                                                               the ID begins with (claim; every step that ends the wait removes it)
//	<prefix>spend:<day>:<scope>  hash  8 days since the last write  spent = what was settled that day, r:<id> = reserved for a run, in
//	                                                               micro-dollars; day = days since 1970, UTC (budget)
//	<prefix>costs:<day>       hash    90 days since the last write "<scopes, a line each>\n<model>" = "<micro-dollars> <runs> <tokens: input,
//	                                                               output, read from the cache, written to it>" of the runs settled
//	                                                               that day; other = all beyond CostCap (budget, costs)
//	<prefix>epoch             hash    forever                      id = the name of this data, lost = when earlier data was lost (epoch)
//	<prefix>fence             string  forever                      the last fence given out (claim)
//	<prefix>outbox            zset    until posted                 ended IDs; score = when to post, or when the lease ends (outbox)
//	<prefix>expiring          zset    trimmed by submit            posted IDs; score = when their record is gone (outbox)
//	<prefix>unreadable        hash    Retention since the last     <id> = why its record cannot be read (unreadable)
//	<prefix>session:<thread>  hash    SessionTTL since the save    the CLI session to resume (session)
//	<prefix>topic:<thread>    string  SessionTTL since the last    notes for the thread's next task, JSON (submit, amend)
//	                                  task
//	<prefix>thread:<thread>   zset    SessionTTL since the last    the IDs of its tasks that have a topic, score 0; the newest 200
//	                                  such task                    (submit)
//	<prefix>checkpoint:<id>   hash    SessionTTL since the save    session and work of an unfinished task, to resume from
//	                                                               (checkpoint; every step that ends the task removes it)
//	<prefix>absorbed:<id>     zset    while it has members         IDs that the task's run has absorbed; score = when
//	                                                               (mailbox; every step that ends the run removes it)
//	<prefix>log:<id>          hash    Retention since the save,    "<fence> <name>" = a run's part of a log (logs)
//	                                  and once posted
//	<prefix>alias:<alias>     string  SessionTTL since last used   the thread it stands for (alias)
//	<prefix>pushed:<repository> <branch>
//	                          list    SessionTTL since the last    commits that errand may have pushed (threads)
//	<prefix>rate:<name>       string  until it has no effect       when all turns of this name would be back (memos)
//	<prefix>votes:<id>        hash    Retention since the last     ratings of the task's answer, by person (votes)
//	<prefix>memo:<name>       hash    SessionTTL since the last    a source's notes between tasks, with a revision (memos)
//	<prefix>credential:<name> hash    10 min after it is free      how runs may start: until, why = held; refused, lapse; interval, next,
//	                                                               slowed = one after the other (credential)
//	<prefix>credentials       zset    trimmed by each report       their names; score = when the hash is gone (credential)
//	<prefix>worker:<id>       string  15 s                         a worker's state, JSON (workers)
//	<prefix>workers           zset    trimmed by each beat         worker IDs; score = when it was seen (workers)
//	<prefix>inquiries         list    30 s since the last          questions of front doors to any worker (workers)
//	<prefix>reply:<key>       string  as long as its worker set    a worker's reply to one of them (workers)
//	<prefix>cancel            channel                              IDs with a new tombstone: only a hint, read the record (keep)
//	<prefix>answers           channel                              IDs with a new answer: likewise (questions)
//	<prefix>mail              channel                              threads with a new task: likewise (mailbox)
//	<prefix>asked             channel                              a hint that there is a new inquiry (workers)
//	<prefix>replies           channel                              keys with a new reply: likewise (workers)
//	<prefix>news              channel                              IDs with new events: likewise (events, hub)
//
// scripts/common.lua has the same names for the scripts.
type keys struct{ prefix string }

func (k keys) task(id string) string          { return k.prefix + "task:" + id }
func (k keys) events(id string) string        { return k.prefix + "events:" + id }
func (k keys) pictures(id string) string      { return k.prefix + "pictures:" + id }
func (k keys) questions(id string) string     { return k.prefix + "questions:" + id }
func (k keys) waiting(thread string) string   { return k.prefix + "waiting:" + thread }
func (k keys) claim(thread string) string     { return k.prefix + "claim:" + thread }
func (k keys) session(thread string) string   { return k.prefix + "session:" + thread }
func (k keys) topic(thread string) string     { return k.prefix + "topic:" + thread }
func (k keys) thread(thread string) string    { return k.prefix + "thread:" + thread }
func (k keys) checkpoint(id string) string    { return k.prefix + "checkpoint:" + id }
func (k keys) absorbed(id string) string      { return k.prefix + "absorbed:" + id }
func (k keys) log(id string) string           { return k.prefix + "log:" + id }
func (k keys) costs(day string) string        { return k.prefix + "costs:" + day }
func (k keys) memo(name string) string        { return k.prefix + "memo:" + name }
func (k keys) votes(id string) string         { return k.prefix + "votes:" + id }
func (k keys) alias(alias string) string      { return k.prefix + "alias:" + alias }
func (k keys) credential(n string) string     { return k.prefix + "credential:" + n }
func (k keys) pushed(r, branch string) string { return k.prefix + "pushed:" + r + " " + branch }
func (k keys) worker(id string) string        { return k.prefix + "worker:" + id }
func (k keys) reply(key string) string        { return k.prefix + "reply:" + key }
func (k keys) inquiries() string              { return k.prefix + "inquiries" }
func (k keys) asked() string                  { return k.prefix + "asked" }
func (k keys) replies() string                { return k.prefix + "replies" }
func (k keys) tasks() string                  { return k.prefix + "tasks" }
func (k keys) joined() string                 { return k.prefix + "joined" }
func (k keys) live() string                   { return k.prefix + "live" }
func (k keys) running() string                { return k.prefix + "running" }
func (k keys) epoch() string                  { return k.prefix + "epoch" }
func (k keys) unreadable() string             { return k.prefix + "unreadable" }
func (k keys) outbox() string                 { return k.prefix + "outbox" }
func (k keys) credentials() string            { return k.prefix + "credentials" }
func (k keys) workers() string                { return k.prefix + "workers" }
func (k keys) cancel() string                 { return k.prefix + "cancel" }
func (k keys) answers() string                { return k.prefix + "answers" }
func (k keys) mail() string                   { return k.prefix + "mail" }
func (k keys) news() string                   { return k.prefix + "news" }
