package config

import (
	"strings"
	"testing"
)

const aKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

func TestWrongValuesAreRefusedWithTheCure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ line, cure string }{
		{"LISTEN=8080", "use host:port"},
		{"LISTEN=127.0.0.1:70000", "use host:port"},
		{"LISTEN=127.0.0.1:08080", "use host:port"},
		{"PUBLIC_URL=pay.example.com", "use an absolute http or https URL"},
		{"PUBLIC_URL=ftp://pay.example.com", "use an absolute http or https URL"},
		{"PUBLIC_URL=https://u:p@pay.example.com", "use an absolute http or https URL"},
		{"PUBLIC_URL=https://pay.example.com/?a=b", "use an absolute http or https URL"},
		{"NODE_NAME=a b", "use 1 to 64 letters"},
		{"TRUSTED_PROXIES=10.0.0.1", "use CIDR ranges"},
		{"TRUSTED_PROXIES=10.0.0.1/8", "use CIDR ranges"},
		{"TRUSTED_PROXIES=10.0.0.0/8,nonsense", `"nonsense" is not accepted: use CIDR ranges`},
		{"NOTIFY_ALLOW_CIDRS=::ffff:10.0.0.0/104", "use CIDR ranges"},
		{"NOTIFY_TIMEOUT=20s", `"20s" is not accepted: use a duration (300s, 15m, 2h) from 1s to 10s`},
		{"NOTIFY_TIMEOUT=999ms", "from 1s to 10s"},
		{"NOTIFY_TIMEOUT=10", "use a duration"},
		{"NOTIFY_CONCURRENCY=0", "use a whole number from 1 to 10000"},
		{"NOTIFY_CONCURRENCY=1e3", "use a whole number"},
		{"NOTIFY_SCHEDULE=weekly", "use day, quick, or"},
		{"NOTIFY_SCHEDULE=1s,0s", "use day, quick, or"},
		{"NOTIFY_SCHEDULE=" + strings.Repeat("1s,", 33), "use day, quick, or"},
		{"CALLBACK_BODY_LIMIT=256KB", "use a size"},
		{"CALLBACK_BODY_LIMIT=-1KiB", "use a size"},
		{"CALLBACK_BODY_LIMIT=9223372036854775807GiB", "use a size"},
		{"API_RATE=2000", "use a rate (2000/s)"},
		{"API_RATE=0/s", "from 1/s to 1000000/s"},
		{"SWEEP_AT=24:00", "use a time of day"},
		{"SWEEP_AT=3:30", "use a time of day"},
		{"TIMEZONE=Asia/Peking", "use a zone of the IANA list"},
		{"TIMEZONE=Local", "use a zone of the IANA list"},
		{"LOG_LEVEL=loud", "use debug, info, warn, error"},
		{"LOG_LEVEL=INFO+2", "use debug, info, warn, error"},
		{"LOG_FORMAT=xml", "use auto, text, json"},
	} {
		_, err := load(t, "", "BACKSTOP_"+c.line)
		name, _, _ := strings.Cut(c.line, "=")
		if err == nil || !strings.Contains(err.Error(), c.cure) || !strings.HasPrefix(err.Error(), "BACKSTOP_"+name+": ") {
			t.Errorf("%.60s: %v; want the name and %q", c.line, err, c.cure)
		}
	}
}

func TestSchemesAreChecked(t *testing.T) {
	t.Parallel()
	for line, fine := range map[string]bool{
		"DATABASE_URL=postgres://u:p@h1:5432,h2:5432/db":    true,
		"DATABASE_URL=postgresql://h/db":                    true,
		"DATABASE_URL=mysql://u:p@h/db":                     false,
		"DATABASE_URL=postgres://":                          false,
		"DATABASE_URL=host=h user=u":                        false,
		"REDIS_URL=redis://:p@h:6379/0":                     true,
		"REDIS_URL=rediss://h:6379":                         true,
		"REDIS_URL=redis-sentinel://h1:1,h2:2/name":         true,
		"REDIS_URL=redis-cluster://h1:1,h2:2":               true,
		"REDIS_URL=h:6379":                                  false,
		"REDIS_URL=http://h:6379":                           false,
		"ALERT_URLS=smtp://u:p@h:587/?from=a@b.c&to=d@e.f":  true,
		"ALERT_URLS=generic+https://h/hook slack://a/b/c":   true,
		"ALERT_URLS=json+https://h/hook,json+http://h/hook": true,
		"ALERT_URLS=generic+https://h/hook,javascript://a":  false,
		"MASTER_KEY=" + aKey:                                true,
		"MASTER_KEY=" + aKey + "," + aKey:                   true,
		"MASTER_KEY=" + strings.Repeat("0f", 32):            true,
		"MASTER_KEY=" + strings.Repeat("0f", 31):            false,
		"MASTER_KEY=correct horse battery staple and so on": false,
	} {
		_, err := load(t, "", "BACKSTOP_"+line)
		if (err == nil) != fine {
			t.Errorf("%s: %v, want fine = %v", line, err, fine)
		}
	}
}

func TestUnknownNamesPointAtTheNearest(t *testing.T) {
	t.Parallel()
	_, err := load(t, "listn: :1\nLISTEN: :1\nListen: :1\n", "BACKSTOP_NOTIFY_TIME_OUT=3s", "BACKSTOP_=x")
	for _, want := range []string{
		"line 1: listn is not known: did you mean listen?",
		"line 2: LISTEN is not known: did you mean listen?",
		"line 3: Listen is not known: did you mean listen?",
		"BACKSTOP_NOTIFY_TIME_OUT is not known: did you mean BACKSTOP_NOTIFY_TIMEOUT?",
		"BACKSTOP_ is not known",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
	if err != nil && strings.Contains(err.Error(), "\n") {
		t.Errorf("the error has more than one line: %q", err)
	}
}

func TestWhatKubernetesInjectsIsLeftAlone(t *testing.T) {
	t.Parallel()
	_, err := load(t, "", "BACKSTOP_PORT=tcp://10.0.0.1:8080", "BACKSTOP_PORT_8080_TCP_ADDR=10.0.0.1",
		"BACKSTOP_SERVICE_HOST=10.0.0.1", "BACKSTOP_SERVICE_PORT_HTTP=8080")
	if err != nil {
		t.Error(err)
	}
}

func TestValuesThatContradictEachOtherAreRefused(t *testing.T) {
	t.Parallel()
	for want, env := range map[string][]string{
		"MASTER_KEY_FILE are both set":  {"BACKSTOP_MASTER_KEY=" + aKey, "BACKSTOP_MASTER_KEY_FILE=/k"},
		"POOL (7, of which 4 write)":    {"BACKSTOP_DATABASE_URL=postgres://h/d", "BACKSTOP_DATABASE_POOL=7"},
		"BACKSTOP_CALLBACK_QUEUE (8)":   {"BACKSTOP_CALLBACK_QUEUE=8"},
		"BACKSTOP_ORDER_EXPIRY (721h0m": {"BACKSTOP_ORDER_EXPIRY=721h"},
		"BACKSTOP_SESSION_IDLE (13h0m":  {"BACKSTOP_SESSION_IDLE=13h"},
	} {
		if _, err := load(t, "", env...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", env, err, want)
		}
	}
	if _, err := load(t, "", "BACKSTOP_DATABASE_URL=postgres://h/d", "BACKSTOP_MASTER_KEY="+aKey, "BACKSTOP_DATABASE_POOL=8"); err != nil {
		t.Errorf("five connections write, for four writers: %v", err)
	}
	if _, err := load(t, "", "BACKSTOP_DATABASE_POOL=4"); err != nil {
		t.Errorf("the pool of PostgreSQL matters without PostgreSQL: %v", err)
	}
}

func TestABadFileIsRefusedByNameAndLine(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"listen: [\n":                       "not valid YAML at line 1",
		"just a text":                       "must contain lines like",
		"- a\n- b\n":                        "must contain lines like",
		"listen: :1\n---\nlisten: :2\n":     "more than one document",
		"listen: :1\nlisten: :2\n":          "line 2: listen is set twice",
		"listen: {host: a}\n":               "listen takes a string, a number or a list",
		"trusted_proxies: [[10.0.0.0/8]]\n": "trusted_proxies takes a string",
		"\nnotify_timeout: 20s\n":           "line 2: notify_timeout: \"20s\" is not accepted",
		"# " + strings.Repeat("x", maxFile): "is larger than 1MiB",
	} {
		if _, err := load(t, file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", file, err, want)
		}
	}
	for _, file := range []string{"# nothing\n", "---\n", "~\n", "{}\n"} {
		if _, err := load(t, file); err != nil {
			t.Errorf("%q: %v", file, err)
		}
	}
}

func TestOnlyAFileThatWasNamedMustExist(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := Load(Source{}); err != nil {
		t.Errorf("without a file: %v", err)
	}
	if _, err := Load(Source{File: "missing.yaml"}); err == nil || !strings.Contains(err.Error(), "missing.yaml does not exist") {
		t.Errorf("with a missing file: %v", err)
	}
}
