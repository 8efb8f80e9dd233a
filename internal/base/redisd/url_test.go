package redisd

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"reflect"
	"strings"
	"testing"
)

func TestParseReadsEveryForm(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]Options{
		"redis://localhost":     {Mode: Single, Addrs: []string{"localhost:6379"}},
		"redis://localhost/":    {Mode: Single, Addrs: []string{"localhost:6379"}},
		"redis://10.0.0.1:7/3":  {Mode: Single, Addrs: []string{"10.0.0.1:7"}, DB: 3},
		"redis://[::1]":         {Mode: Single, Addrs: []string{"[::1]:6379"}},
		"redis://[::1]:7":       {Mode: Single, Addrs: []string{"[::1]:7"}},
		"REDIS://h":             {Mode: Single, Addrs: []string{"h:6379"}},
		"redis://:p%40s%2F@h":   {Mode: Single, Addrs: []string{"h:6379"}, Password: "p@s/"},
		"redis://u:p@ss@h/0":    {Mode: Single, Addrs: []string{"h:6379"}, Username: "u", Password: "p@ss"},
		"redis://:a+b:c@h":      {Mode: Single, Addrs: []string{"h:6379"}, Password: "a+b:c"},
		"rediss://:p@r.example": {Mode: Single, Addrs: []string{"r.example:6379"}, Password: "p", TLS: true},
		"redis-sentinel://u:p@s1,s2:26380,[::1]/mymaster/2?sentinel_username=su&sentinel_password=s%26p&tls=true": {
			Mode: Sentinel, Addrs: []string{"s1:26379", "s2:26380", "[::1]:26379"}, Master: "mymaster", DB: 2,
			Username: "u", Password: "p", SentinelUsername: "su", SentinelPassword: "s&p", TLS: true,
		},
		"redis-sentinel://s1/m":                   {Mode: Sentinel, Addrs: []string{"s1:26379"}, Master: "m"},
		"redis-cluster://:p@c1:7001,c2/?tls=true": {Mode: Cluster, Addrs: []string{"c1:7001", "c2:6379"}, Password: "p", TLS: true},
		"redis-cluster://c1":                      {Mode: Cluster, Addrs: []string{"c1:6379"}},
	} {
		got, err := Parse(raw)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Parse(%q)\n got %#v, %v\nwant %#v", raw, got, err, want)
		}
	}
}

func TestParseRefusesWithoutShowingAnything(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"":                                    "the scheme is missing",
		"s3cret@h":                            "the scheme is missing",
		"s3cret://h":                          "unknown scheme",
		"redis:/h":                            "the scheme is missing",
		"redis://":                            "the host name is missing",
		"redis://:s3cret@":                    "the host name is missing",
		"redis://s3cret@h":                    "without a password",
		"redis://s3cret:@h":                   "without a password",
		"redis://:s3cret%zz@h":                "percent-encode",
		"redis://u%zs3cret:p@h":               "percent-encode",
		"redis://:s3cret%0a@h":                "percent-encode",
		"redis://:s3cret/x@h":                 "percent-encode",
		"redis://u:s3cret#@h,h2":              "several hosts",
		"redis://:p@s3cret!":                  "not allowed in a host name",
		"redis://h:s3cret":                    "port is not a number",
		"redis://h:0":                         "port is not a number",
		"redis://h:65536":                     "port is not a number",
		"redis://h:+1":                        "port is not a number",
		"redis://h:":                          "port is not a number",
		"redis://::1":                         "the host name is missing",
		"redis://fe80::1":                     "port is not a number",
		"redis://[::1":                        "not closed",
		"redis://[::1]s3cret":                 "after the closing bracket",
		"redis://[s3cret]":                    "is not an IPv6 address",
		"redis://h/s3cret":                    "database is not a number",
		"redis://h/-1":                        "database is not a number",
		"redis://h/65536":                     "database is not a number",
		"redis://h/1/2":                       "database is not a number",
		"redis://h?tls=true":                  "unknown parameter",
		"redis://:a?s3cret@h":                 "percent-encode",
		"redis-sentinel://h":                  "the master name is missing",
		"redis-sentinel://h/%20":              "the master name is missing",
		"redis-sentinel://h/m/x":              "database is not a number",
		"redis-sentinel://h/m?s3cret=1":       "unknown parameter",
		"redis-sentinel://h/m?tls=s3cret":     "neither true nor false",
		"redis-sentinel://h/m?tls=1&tls=0":    "given twice",
		"redis-sentinel://h/m?a=%s3cret":      "cannot be read",
		"redis-sentinel://h,/m":               "host 2: the host name is missing",
		"redis-cluster://h/0":                 "no database numbers",
		"redis-cluster://h?sentinel_password": "unknown parameter",
		"redis-cluster://" + strings.Repeat("h,", maxHosts) + "h": "more than",
		"redis://" + strings.Repeat("h", maxURL):                  "longer than",
	} {
		_, err := Parse(raw)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%.60q) = %v, want %q in it", raw, err, want)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("Parse(%.60q) shows the password: %v", raw, err)
		}
	}
}

func TestOptionsNeverPrintPasswords(t *testing.T) {
	t.Parallel()
	o, err := Parse("redis-sentinel://u:s3cret@h/m?sentinel_password=s3cret")
	if err != nil || string(o.Password) != "s3cret" {
		t.Fatalf("%v, %v", o.Password, err)
	}
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "o", o, "p", o.Password)
	for _, shown := range []string{
		string(text), log.String(), fmt.Sprintf("%v %+v %#v %v %q", o, o, o, &o, []any{o}),
		fmt.Sprintf("%v %+v %#v", connOpt(o), connOpt(o), connOpt(o)),
	} {
		if strings.Contains(shown, "s3cret") {
			t.Errorf("shows the password: %s", shown)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"redis://:p@h:1/2", "rediss://[::1]:6379", "redis-sentinel://u:p@a,b:2/m/1?sentinel_password=x&tls=true",
		"redis-cluster://a:1,b:2?tls=false", "redis://%", "redis://@:@/?=&", "redis-sentinel:///%2f",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		o, err := Parse(raw)
		if err != nil {
			if !reflect.DeepEqual(o, Options{}) {
				t.Fatalf("an error and options: %#v", o)
			}
			return
		}
		if len(o.Addrs) == 0 || len(o.Addrs) > maxHosts || o.Mode == Single && len(o.Addrs) != 1 {
			t.Fatalf("addresses %q of mode %s", o.Addrs, o.Mode)
		}
		for _, addr := range o.Addrs {
			host, port, err := net.SplitHostPort(addr)
			if err != nil || host == "" || port == "" {
				t.Fatalf("address %q: %v", addr, err)
			}
		}
		if (o.Mode == Sentinel) != (o.Master != "") || o.Mode == Cluster && o.DB != 0 || o.DB < 0 {
			t.Fatalf("%#v", o)
		}
		if err := o.Client().Close(); err != nil { // no option makes the library panic
			t.Fatal(err)
		}
	})
}
