package store

import "strings"

// key returns a key: the prefix and the parts, with colons between.
//
// Every key, with its type, its lifetime and the file that writes it. <prefix> is Config.Prefix, "errand:" by default.
//
//	key                       type    lives                        what
//	<prefix>task:<id>         hash    Retention once posted        the record (transition, claim)
//	<prefix>events:<id>       stream  Retention once posted        field data = one event, field end = the end mark (events, claim)
//	<prefix>questions:<id>    hash    Retention once posted        q:<key> = a question, f:<key> = the fence of the asking claim,
//	                                                               a:<key> = its answer, s:<key> = the nonce of the call that used
//	                                                               the key first (questions)
//	<prefix>spent:<id>        string  Retention                    a message used as an answer: "<id> <nonce>" of the asking
//	                                                               task and of the call that answered (questions)
//	<prefix>pictures:<id>     hash    1 h; with a task as that     <n> = the data of the n-th picture that came with the task (pictures)
//	<prefix>tasks             zset    trimmed by the leader        all IDs, score 0: sorted by text, which is by time (transition)
//	<prefix>live              zset    while not ended              the IDs that have not ended, score 0 (transition, claim)
//	<prefix>ready             zset    while it waits               the IDs that wait and are not blocked; score = when to make sure of its
//	                                                               delivery, 0 = now (transition, claim; the claim and the ending remove it)
//	<prefix>running           zset    while it runs                the IDs that run; score = the fence (claim, transition; every step
//	                                                               that ends the run removes it)
//	<prefix>leader:<name>     string  as long as its holder asked  "<nonce> <term>" of the process that leads (leader)
//	<prefix>joined            set     while it has members         the IDs that are absorbed (claim; likewise)
//	<prefix>waiting:<thread>  zset    while it has members         the thread's IDs that wait or run; score = the microseconds the ID
//	                                                               begins with, 0 for the running one (transition, claim)
//	<prefix>claim:<thread>    string  ClaimTTL                     "<fence> <id> <nonce>" of the holder (claim); "lock <nonce> <ttl ms>"
//	                                                               of a ThreadLock, for its ttl (threadlock)
//	<prefix>cap:<scope>       zset    ClaimTTL + Outage since the  the IDs that run and count in the scope; score = when the lease ends
//	                                  last refresh of any          (claim; every step that ends the run removes it)
//	<prefix>line:<scope>      zset    while it has members         waiting IDs that are blocked for the scope's cap; score = the microseconds
//	                                                               the ID begins with, plus 4e15 for each more urgent class (claim,
//	                                                               transition; every step that ends the wait removes it)
//	<prefix>linecaps          hash    while it has members         the scopes with a line, and kinds = the cap (claim, transition)
//	<prefix>spend:<day>:<scope>  hash  8 days since the last write  spent = what was settled that day, r:<id> = reserved for a run, in
//	                                                               micro-dollars; day = days since 1970, UTC (costs)
//	<prefix>costs:<day>       hash    90 days since the last write "<scopes and credential, a line each>[\nsize:<size>]\n<model>" = "<micro-dollars> <runs> <tokens: input,
//	                                                               output, read from the cache, written to it>[ <highest cost>]" of the runs
//	                                                               settled that day, the last with a size; other = all beyond CostCap (costs)
//	<prefix>tally:<day>       hash    8 days since the last write  "<hour> ended <kind>" = tasks that ended so, "<hour> waited <class> <n>" = those
//	                                                               whose first run started up to 2^n s after they were due (claim,
//	                                                               transition; read by tally)
//	<prefix>epoch             hash    forever                      id = this data's name, lost = when earlier data was lost (diagnose);
//	                                                               process = Redis' run ID or '', since = when that took over or the data
//	                                                               began, newest = what the newest ID began with then (claim, submit,
//	                                                               diagnose)
//	<prefix>fence             string  forever                      the last fence given out (claim)
//	<prefix>replicated        string  forever                      empty; a write to wait for replicas with (store)
//	<prefix>fleet             hash    forever                      <part> = the identity of the fleet that the data belongs to (fleet)
//	<prefix>outbox            zset    until posted                 ended IDs; score = when to post, or when the lease ends (transition)
//	<prefix>outbox:<source>   zset    while it has members         the same of the tasks whose IDs name the source (transition)
//	<prefix>outboxes          set     while it has members         the sources of them (transition)
//	<prefix>undelivered       zset    Retention since the last     IDs whose final message was given up; score = when (outbox)
//	<prefix>looked            string  forever                      Redis' clock when a worker last looked for messages to post (outbox)
//	<prefix>expiring          zset    trimmed by the leader        posted IDs; score = their record's expiry (transition)
//	<prefix>session:<thread>  hash    SessionTTL since the save    the CLI session to resume (session)
//	<prefix>topic:<thread>    string  SessionTTL since the last    notes for the thread's next task, JSON (transition)
//	                                  task
//	<prefix>thread:<thread>   zset    SessionTTL since the last    the IDs of its tasks that have a topic, score 0; the newest 200
//	                                  such task                    (transition)
//	<prefix>checkpoint:<id>   hash    SessionTTL since the save    session and work of an unfinished task, to resume from
//	                                                               (checkpoint; every step that ends the task removes it)
//	<prefix>absorbed:<id>     zset    while it has members         IDs that the task's run has absorbed; score = when
//	                                                               (claim; every step that ends the run removes it)
//	<prefix>log:<id>          hash    Retention since the save,    "<fence> <name>" = a run's part of a log, or its changes (logs);
//	                                  and once posted              "file/…" is one that its agent attached;
//	                                                               events = the archived events (archive)
//	<prefix>alias:<alias>     string  SessionTTL since last used   the thread it names (threads)
//	<prefix>pushed:<repository> <branch>
//	                          list    SessionTTL since the last    commits that errand may have pushed (threads)
//	<prefix>rate:<name>       string  until it has no effect       when all turns of this name would be back (memos)
//	<prefix>votes:<id>        hash    Retention since the last     ratings of the task's answer, by person (votes)
//	<prefix>memo:<name>       hash    SessionTTL since the last    a source's notes between tasks, with a revision (memos)
//	<prefix>credential:<name> hash    10 min after it is free      how runs may start: until, why = held; refused, lapse; interval, next,
//	                                                               slowed = one after the other (credential)
//	<prefix>login:<hash>      string  as long as the session       who a browser is, JSON; "used" for a used state of a login (logins)
//	<prefix>tokens            hash    forever                      <hash> = what an API token may do and when it expires, JSON (lists)
//	<prefix>audit             list    the newest AuditCap          "<hash> <JSON>" of what visitors changed; the hash is of the one before and
//	                                                               the JSON (audit)
//	<prefix>auditchain        hash    forever                      seq = entries so far, head = the last hash, removed = entries that were
//	                                                               removed, base = the hash of the last of them (audit)
//	<prefix>credentials       zset    trimmed by each report       their names; score = when the hash is gone (credential)
//	<prefix>worker:<id>       string  15 s                         a worker's state, JSON (workers)
//	<prefix>workers           zset    trimmed by each beat         worker IDs; score = when it was seen (workers)
//	<prefix>pool:<pool>       zset    15 s since the last beat     the IDs of its workers; score = when it was seen (workers)
//	<prefix>paused            hash    forever                      classes whose tasks are not taken = since when and who, JSON (lists)
//	<prefix>cordoned          hash    forever                      worker IDs and hosts that take no tasks = likewise (lists);
//	                                                               an ID goes an hour after its worker (workers)
//	<prefix>departed          zset    trimmed by each beat         cordoned IDs of dead workers; score = when that was noticed (workers)
//	<prefix>rebuilds          hash    forever                      repositories whose environments have to be replaced = since when
//	                                                               and who, JSON (lists)
//	<prefix>inquiries         list    30 s since the last          questions of front doors to any worker of the default pool (inquiry)
//	<prefix>inquiries:<pool>  list    30 s since the last          the same of another pool (inquiry)
//	<prefix>reply:<key>       string  as long as its worker set    a worker's reply to one of them (inquiry)
//	<prefix>cancel            channel                              IDs with a new tombstone: only a hint, read the record (transition)
//	<prefix>answers           channel                              IDs with a new answer: likewise (questions)
//	<prefix>mail              channel                              threads with a new task: likewise (transition)
//	<prefix>asked             channel                              a hint that there is a new inquiry (inquiry)
//	<prefix>replies           channel                              keys with a new reply: likewise (inquiry)
//	<prefix>news              channel                              IDs with new events: likewise (events)
//
// A session, a checkpoint, a picture and a part of a log are values as in values.go, which may be in Config.Objects.
//
// scripts/common.lua has the same names for the scripts.
func (c *conn) key(parts ...string) string { return c.prefix + strings.Join(parts, ":") }
