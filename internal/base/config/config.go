// Package config defines and reads the configuration: a BACKSTOP_* environment variable
// wins over the same name in backstop.yaml, which wins over the default. The tags of Config
// are the one list of names, defaults, limits and meanings; Load, `backstop config` and
// docs/configuration.md are derived from it.
package config

import (
	"log/slog"
	"net/netip"
	"path/filepath"
	"time"
	_ "time/tzdata" // slim containers have no zone files, and the sweep needs them
)

//go:generate go test . -run TestDocsAreCurrent -update

// Config is the effective configuration of one process. It is read once at startup and
// never changed afterwards.
//
// Tags: env is the name without prefix, default its text ("" = not set), empty the
// meaning of "not set", min and max the accepted range (inclusive), oneof the accepted
// words, form the accepted form of a text (see forms), group starts a section of the
// documentation, doc is the meaning.
type Config struct {
	Listen           string         `env:"LISTEN" default:"127.0.0.1:8080" form:"address" group:"Server" doc:"Address of callbacks, API and, without ADMIN_LISTEN, console. Use 0.0.0.0:8080 in a container."`
	PublicURL        string         `env:"PUBLIC_URL" default:"" empty:"from LISTEN" form:"public" doc:"Used in links and as the base of the suppliers' callback URLs."`
	AdminListen      string         `env:"ADMIN_LISTEN" default:"" empty:"none: everything is on LISTEN" form:"address" doc:"Separate address for console, admin API, /asynqmon/ and /metrics. LISTEN then serves only callbacks, the merchants' API, /healthz and /readyz. An eighth of HTTP_CONNECTIONS is reserved for it."`
	AdminURL         string         `env:"ADMIN_URL" default:"" empty:"PUBLIC_URL, else from ADMIN_LISTEN" form:"public" doc:"URL of the console: used in alerts and links; with https its cookies are for https only."`
	Environment      string         `env:"ENVIRONMENT" default:"" empty:"not named: no badge" oneof:"production staging test" doc:"What this installation is for: a badge in the console's top bar and in the titles of its pages. In production the guide to the first steps offers no sandbox unless asked."`
	Shadow           bool           `env:"SHADOW" default:"false" oneof:"false true" doc:"Shadow mode, beside another system (docs/takeover.md): callbacks are booked and answered, but no merchant or subscriber is notified, and no supplier is called for what moves money. The same on all nodes."`
	Data             string         `env:"DATA" default:"./data" form:"path" doc:"Folder of the embedded database, queue and keys. One server at a time."`
	NodeName         string         `env:"NODE_NAME" default:"" empty:"created at the first start and stored in the data folder" form:"name" doc:"Name of this node in leases, logs and metrics; unique for each node."`
	TrustedProxies   []netip.Prefix `env:"TRUSTED_PROXIES" default:"" empty:"none" doc:"Proxies whose X-Forwarded-For is trusted. From any other client the header is ignored."`
	ShutdownTimeout  time.Duration  `env:"SHUTDOWN_TIMEOUT" default:"15s" min:"1s" max:"5m" doc:"Time to finish or release running work after SIGTERM."`
	Drain            time.Duration  `env:"DRAIN" default:"0s" min:"0s" max:"5m" doc:"How long callbacks are still accepted after SIGTERM. Meanwhile /readyz answers 503 and each answer closes its connection, so that load balancers switch to another node. SHUTDOWN_TIMEOUT begins afterwards; a second SIGTERM ends the drain."`
	HTTPReadTimeout  time.Duration  `env:"HTTP_READ_TIMEOUT" default:"10s" min:"1s" max:"5m" doc:"Time to read one request, headers and body: the limit for slow clients."`
	HTTPWriteTimeout time.Duration  `env:"HTTP_WRITE_TIMEOUT" default:"30s" min:"1s" max:"5m" doc:"Time to write one answer."`
	HTTPIdleTimeout  time.Duration  `env:"HTTP_IDLE_TIMEOUT" default:"60s" min:"1s" max:"1h" doc:"How long a kept-alive connection may be idle."`
	HTTPConnections  int            `env:"HTTP_CONNECTIONS" default:"10000" min:"16" max:"1000000" doc:"Concurrent connections; more are refused. At most half of the process's limit of open files."`
	SessionIdle      time.Duration  `env:"SESSION_IDLE" default:"30m" min:"1m" max:"24h" doc:"A console session without requests ends after this time."`
	RequireTOTP      Words          `env:"REQUIRE_TOTP" default:"" empty:"nobody has to" form:"role" doc:"Roles that require a second factor: whoever has one sets it up at the next sign-in and can do nothing else before."`
	SessionMax       time.Duration  `env:"SESSION_MAX" default:"12h" min:"1m" max:"168h" doc:"A console session ends after this time in any case."`

	OIDCIssuer           string         `env:"OIDC_ISSUER" default:"" empty:"none: sign-in by password" form:"public" group:"Sign-in by OpenID Connect" doc:"Issuer of the provider at which operators sign in, exactly as in its discovery document. Its redirect URI is ADMIN_URL/login/oidc/callback; see docs/sign-in.md."`
	OIDCClientID         string         `env:"OIDC_CLIENT_ID" default:"" empty:"none" form:"word" doc:"Client of this console at the provider."`
	OIDCClientSecret     Secret         `env:"OIDC_CLIENT_SECRET" default:"" empty:"see OIDC_CLIENT_SECRET_FILE; a client without a secret is protected by PKCE alone" form:"word" doc:"Secret of the client."`
	OIDCClientSecretFile string         `env:"OIDC_CLIENT_SECRET_FILE" default:"" empty:"none" form:"path" doc:"File with the secret of the client, read at each start."`
	OIDCRoles            GroupRoles     `env:"OIDC_ROLES" default:"" empty:"none" form:"role" doc:"Which group has which role, as group=role,group=role (payments-leads=lead,payments=ops). A person has those of all their groups, read at each sign-in. Without one of these groups, sign-in is refused."`
	OIDCGroupsClaim      string         `env:"OIDC_GROUPS_CLAIM" default:"groups" form:"word" doc:"Claim of the ID token, or of the userinfo, with the groups of the person."`
	OIDCMerchantsClaim   string         `env:"OIDC_MERCHANTS_CLAIM" default:"" empty:"no limit by the provider" form:"word" doc:"Claim with the codes of the merchants to which a person is limited, read at each sign-in. Without the claim there is no limit; with an empty one, or an unknown code, sign-in is refused."`
	OIDCAllowCIDRs       []netip.Prefix `env:"OIDC_ALLOW_CIDRS" default:"" empty:"none" doc:"Non-public ranges in which the provider may be, over plain http too and on any port. Everything non-public is refused otherwise."`
	Passwords            string         `env:"PASSWORDS" default:"on" oneof:"on off" doc:"off leaves passwords to the operator of BREAK_GLASS; everybody else signs in at the provider."`
	BreakGlass           string         `env:"BREAK_GLASS" default:"" empty:"none" form:"operator" doc:"Operator who may sign in by password when the provider is down, whatever PASSWORDS says. Each such sign-in raises the alert break_glass."`

	LogLevel  slog.Level `env:"LOG_LEVEL" default:"info" oneof:"debug info warn error" group:"Logs" doc:"The lowest level that is logged."`
	LogFormat string     `env:"LOG_FORMAT" default:"auto" oneof:"auto text json" doc:"Form of a log line; auto is text on a terminal, else json."`

	DatabaseURL   Secret `env:"DATABASE_URL" default:"" empty:"SQLite in the data folder" form:"postgres" group:"Database, queue and keys" doc:"PostgreSQL for production, postgres://user:password@host:5432/name."`
	DatabasePool  int    `env:"DATABASE_POOL" default:"16" min:"2" max:"1000" doc:"Connections to PostgreSQL per node: an eighth is for lists and search, a quarter for other reads, and the rest writes. The rest must be more than COMMIT_WRITERS, or ticks and acts would wait for callbacks. At least 5 are used, and 4 more for writes that need not wait for the disk."`
	RedisURL      Secret `env:"REDIS_URL" default:"" empty:"embedded" form:"redis" doc:"Redis of the queues. It must run with maxmemory-policy noeviction."`
	MasterKey     Secret `env:"MASTER_KEY" default:"" empty:"see MASTER_KEY_FILE" form:"key" doc:"Encrypts secrets at rest. With DATABASE_URL it or a key file is required. Several keys, separated by commas, during rotation: the current one first."`
	MasterKeyFile string `env:"MASTER_KEY_FILE" default:"" empty:"master.key in the data folder, created at the first start if no database URL is set" form:"path" doc:"File with the master key, not writable by other users and not world-readable; one key per line, the current one first."`

	AdminPasswordFile string `env:"ADMIN_PASSWORD_FILE" default:"" empty:"a password is created and printed" form:"path" doc:"File with the one-time password of the operator admin, read at the first start only. It must be changed within 24 hours, as every one-time password must."`

	CallbackBodyLimit Bytes         `env:"CALLBACK_BODY_LIMIT" default:"256KiB" min:"1KiB" max:"4MiB" group:"Callbacks from suppliers" doc:"A larger callback is answered 413."`
	CallbackRate      Rate          `env:"CALLBACK_RATE" default:"2000/s" min:"1/s" max:"1000000/s" doc:"Callbacks per second from one client address; more are answered 429."`
	CallbackWait      time.Duration `env:"CALLBACK_WAIT" default:"4s" min:"100ms" max:"30s" doc:"How long a callback waits for its commit before it is answered 503. Suppliers give up after about 5s."`
	CallbackQueue     int           `env:"CALLBACK_QUEUE" default:"4096" min:"1" max:"100000" doc:"Callbacks that may wait for a commit; more are answered 503 at once."`
	CommitBatch       int           `env:"COMMIT_BATCH" default:"64" min:"1" max:"1024" doc:"Maximum number of callbacks in one transaction."`
	CommitWriters     int           `env:"COMMIT_WRITERS" default:"4" min:"1" max:"64" doc:"Concurrent transactions of callbacks on PostgreSQL; SQLite always has 1."`
	RefusedRate       Rate          `env:"REFUSED_RATE" default:"10/s" min:"1/s" max:"1000/s" doc:"Refused callbacks recorded per second and supplier; the rest is only counted, so that forgeries cannot fill the disk."`
	RefusedRows       int           `env:"REFUSED_ROWS" default:"100000" min:"100" max:"10000000" doc:"Refused callbacks stored; the oldest are deleted first."`

	APIBodyLimit   Bytes         `env:"API_BODY_LIMIT" default:"64KiB" min:"1KiB" max:"4MiB" group:"Merchant API and orders" doc:"A larger API request is answered 413."`
	APIRate        Rate          `env:"API_RATE" default:"2000/s" min:"1/s" max:"1000000/s" doc:"API requests per second and key; more are answered 429."`
	OrderExpiry    time.Duration `env:"ORDER_EXPIRY" default:"1800s" min:"1s" max:"8760h" doc:"Lifetime of an order without expires_in."`
	OrderExpiryMax time.Duration `env:"ORDER_EXPIRY_MAX" default:"720h" min:"1s" max:"8760h" doc:"Maximum expires_in."`
	ClosingGrace   time.Duration `env:"CLOSING_GRACE" default:"15m" min:"0s" max:"24h" doc:"How long an order in closing waits for a late payment before it is closed."`

	SupplierAllowCIDRs    []netip.Prefix `env:"SUPPLIER_ALLOW_CIDRS" default:"" empty:"none" group:"Calls to suppliers and compensation" doc:"Non-public ranges in which suppliers' base_url, gateway_url, query_url and so on may be (loopback for backstop simulate). Everything non-public is refused otherwise."`
	SupplierTimeout       time.Duration  `env:"SUPPLIER_TIMEOUT" default:"8s" min:"100ms" max:"60s" doc:"Time limit of one call to a supplier, from dial to the last byte."`
	SupplierInFlight      int            `env:"SUPPLIER_IN_FLIGHT" default:"8" min:"1" max:"1000" doc:"Calls in flight per supplier and node."`
	QuerySteps            Waits          `env:"QUERY_STEPS" default:"1m,2m,5m,10m,30m,1h,2h,6h,12h,24h" doc:"Waits before the queries of a started payment at its supplier, each counted from the query before; the first from pay."`
	CloseSteps            Waits          `env:"CLOSE_STEPS" default:"0s,10s,30s,1m,2m,5m,10m,30m" doc:"Waits between attempts to close an order whose supplier can be queried; the last one repeats until 24h after the order's expires_at."`
	CompensateSteps       Waits          `env:"COMPENSATE_STEPS" default:"1s,5s,15s,1m,5m,15m,1h,2h,4h,8h" doc:"Waits before the attempts of a compensation; after the last attempt it is dead until an operator runs it again."`
	CompensateConcurrency int            `env:"COMPENSATE_CONCURRENCY" default:"16" min:"1" max:"1000" doc:"Compensations that run at a time, per node."`
	BatchRate             Rate           `env:"BATCH_RATE" default:"100/s" min:"1/s" max:"100000/s" doc:"Rows of one batch that are processed per second, until the rate is changed on the batch's page."`
	ApprovalExpires       time.Duration  `env:"APPROVAL_EXPIRES" default:"24h" min:"1s" max:"720h" doc:"How long a proposal waits for a second person; after that it expires without effect."`
	OperatorToken         Secret         `env:"OPERATOR_TOKEN" default:"" empty:"none" form:"personal" doc:"For commands, not for servers: the personal token of the operator who runs the command. apply proposes in their name when changes wait for a second person."`

	NotifyAllowCIDRs  []netip.Prefix `env:"NOTIFY_ALLOW_CIDRS" default:"" empty:"none" group:"Notifications to merchants" doc:"Non-public ranges that notifications may reach, over plain http too and on any port (127.0.0.0/8,::1/128 in development). Everything non-public is refused otherwise."`
	NotifyConcurrency int            `env:"NOTIFY_CONCURRENCY" default:"50" min:"1" max:"10000" doc:"Deliveries in flight per node."`
	NotifyMaxInFlight int            `env:"NOTIFY_MAX_IN_FLIGHT" default:"10" min:"1" max:"1000" doc:"Deliveries in flight per merchant and node, unless the merchant sets its own."`
	NotifySchedule    string         `env:"NOTIFY_SCHEDULE" default:"day" form:"schedule" doc:"Waits before the second and later attempts, each counted from the end of the attempt before, unless the merchant sets its own. day = 1s 3s 5s 30s 2m 10m 30m 1h 2h 4h 8h 8h, quick = 1s 3s 5s."`
	NotifyTimeout     time.Duration  `env:"NOTIFY_TIMEOUT" default:"10s" min:"1s" max:"10s" doc:"Time limit of one attempt, from dial to the last byte, unless the merchant sets its own."`
	NotifyWindow      int            `env:"NOTIFY_WINDOW" default:"20000" min:"100" max:"1000000" doc:"Maximum number of ids in Redis per queue; the rest waits in the database, so that a backlog cannot fill Redis."`
	NotifyObjective   Percent        `env:"NOTIFY_OBJECTIVE" default:"99.5%" min:"50%" max:"99.999%" doc:"Share of orders of which merchants are to be notified: the objective on the overview, on the analytics page and in the daily report. The rest is the error budget."`
	BreakerFailures   int            `env:"BREAKER_FAILURES" default:"5" min:"1" max:"1000" doc:"Failures in a row that open a merchant's breaker, unless the merchant sets its own."`
	BreakerOpen       time.Duration  `env:"BREAKER_OPEN" default:"300s" min:"1s" max:"24h" doc:"How long a breaker stays open before one notification is sent as a probe; all others are parked until a probe is delivered."`
	BreakerRate       int            `env:"BREAKER_RATE" default:"80" min:"0" max:"100" doc:"Percentage of failures within BREAKER_WINDOW that also opens a breaker; 0 turns this rule off."`
	BreakerWindow     time.Duration  `env:"BREAKER_WINDOW" default:"60s" min:"1s" max:"1h" doc:"Window of BREAKER_RATE."`
	BreakerLeast      int            `env:"BREAKER_LEAST" default:"20" min:"1" max:"100000" doc:"Minimum number of results within BREAKER_WINDOW; with fewer, BREAKER_RATE does not apply."`

	SweepAt                TimeOfDay      `env:"SWEEP_AT" default:"03:30" group:"Sweep, cleanup and retention" doc:"Time of day, at low traffic, when everything unfinished is checked again, the figures are recounted from their rows, and the books are checked."`
	SweepDays              int            `env:"SWEEP_DAYS" default:"3" min:"1" max:"90" doc:"How many days a sweep looks back; anything older is left to the exception desk."`
	SweepRate              Rate           `env:"SWEEP_RATE" default:"200/s" min:"1/s" max:"10000/s" doc:"Rows that a sweep makes due again per second."`
	Timezone               *time.Location `env:"TIMEZONE" default:"Asia/Shanghai" doc:"Time zone of SWEEP_AT and of the days in reports."`
	CleanupEvery           time.Duration  `env:"CLEANUP_EVERY" default:"5m" min:"1s" max:"24h" doc:"How often rows past their retention are removed, in small steps."`
	RetentionCallbacks     time.Duration  `env:"RETENTION_CALLBACKS" default:"2160h" min:"1h" max:"87600h" doc:"How long callbacks are kept. The record that a callback was received is kept forever, and callbacks of an open exception are copied to the exception first. On PostgreSQL, from 744h on, whole months are dropped, so rows stay up to a month longer."`
	RetentionAttempts      time.Duration  `env:"RETENTION_ATTEMPTS" default:"2160h" min:"1h" max:"87600h" doc:"How long the second and later attempts of notifications, the history of breakers, and ended alerts are kept; the first attempt is kept with its notification. Attempts are dropped by the month, as callbacks are."`
	RetentionNotifications time.Duration  `env:"RETENTION_NOTIFICATIONS" default:"17520h" min:"1h" max:"175200h" doc:"How long completed notifications are kept, with their events. A notification is not deleted while it is open, or if it was given up and an exception of its order is open. Orders and ledger entries are kept forever."`
	RetentionReports       time.Duration  `env:"RETENTION_REPORTS" default:"9600h" min:"1h" max:"87600h" doc:"How long hourly figures and the history of the money at risk are kept. Figures by the minute are deleted after 72h, those that a forecast needs after 36 days, and hours of the analytics page after 100 days; days are kept as long as this."`
	RetentionHistory       time.Duration  `env:"RETENTION_HISTORY" default:"17520h" min:"1h" max:"175200h" doc:"How long the status history of orders is kept, by the age of the order. It is dropped by the month, as callbacks are."`

	AlertURLs     []Secret `env:"ALERT_URLS" default:"" empty:"none" form:"alert" group:"Alerts" doc:"Where alerts go: telegram://token@telegram?chats=…, slack://…, smtp://user:password@host:port/?from=…&to=…, json+https://… (JSON for programs), generic+https://… (plain text). Without targets they are only shown in the console."`
	AlertLanguage string   `env:"ALERT_LANGUAGE" default:"zh" oneof:"zh en" doc:"Language of alerts and of the mailed daily report."`
	ReportURLs    []Secret `env:"REPORT_URLS" default:"" empty:"none: the reports are on the page only" form:"mail" doc:"Who gets the daily report by mail: smtp://user:password@host:port/?from=…&to=a@example.com,b@example.com, one mail a day for each URL."`

	TestListen      string `env:"TEST_LISTEN" default:"" empty:"no test mode" form:"address" group:"Test mode" doc:"Address of test mode: its console, its API and its payment pages, on a database of its own (docs/testmode.md). With it, LISTEN takes API keys that begin with sk_test_, for test mode."`
	TestURL         string `env:"TEST_URL" default:"" empty:"from TEST_LISTEN" form:"public" doc:"URL of test mode, of which the URLs of payment pages are made."`
	TestDatabaseURL Secret `env:"TEST_DATABASE_URL" default:"" empty:"SQLite in the folder test of the data folder; required with DATABASE_URL" form:"postgres" doc:"PostgreSQL database of test mode; never that of DATABASE_URL."`
	TestRedisURL    Secret `env:"TEST_REDIS_URL" default:"" empty:"the database after that of REDIS_URL; embedded without REDIS_URL; required with a cluster" form:"redis" doc:"Redis of test mode."`

	OTLPEndpoint string `env:"OTLP_ENDPOINT" default:"" empty:"OTEL_EXPORTER_OTLP_ENDPOINT, else none" form:"public" group:"Traces" doc:"OpenTelemetry collector (OTLP over HTTP, http://127.0.0.1:4318) that receives the traces of payments: callback, commit, delivery. Headers and certificates come from the OTEL_EXPORTER_OTLP_* variables."`
	TraceOneIn   int    `env:"TRACE_ONE_IN" default:"1" min:"1" max:"1000000" doc:"One payment in this many is traced."`

	origins map[string]Origin
}

// MasterKeyPath is the path of the master key file: as set, or in the data folder. It is
// not used if MasterKey is set.
func (c Config) MasterKeyPath() string {
	if c.MasterKeyFile != "" {
		return c.MasterKeyFile
	}
	return filepath.Join(c.Data, "master.key")
}

// Embedded reports whether this process has an embedded database and an embedded Redis.
func (c Config) Embedded() (database, redis bool) {
	return !c.DatabaseURL.IsSet(), !c.RedisURL.IsSet()
}
