package cli

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"backstop/internal/base/egress"
	"backstop/internal/supplier"
)

// asked is a client that sends nothing, and notes where a supplier would be asked.
type asked struct{ at string }

func (a *asked) Do(r *http.Request) supplier.Exchange {
	a.at = r.URL.Scheme + "://" + r.URL.Host
	return supplier.Exchange{Class: supplier.ClassConnect}
}

// targets returns where the suppliers are asked, with their codes.
func (a *asked) targets(ctx context.Context, all []supplier.Entry) map[string]string {
	found := map[string]string{}
	for _, s := range all {
		may := supplier.AbilitiesOf(s.Adapter)
		if !s.Enabled || may.Querier == nil {
			continue
		}
		a.at = ""
		_, _ = may.Query(ctx, supplier.Ref{Reference: "0", Amount: 1, Currency: "CNY"}) // no answer is expected: nothing is sent
		if a.at != "" {
			found[a.at] = s.Code
		}
	}
	return found
}

// reach opens and closes a connection to each target, which is a scheme and a host.
func (x *checkup) reach(check string, targets map[string]string, out *egress.Client) {
	var failed []string
	var lock sync.Mutex
	var wait sync.WaitGroup
	slots := make(chan struct{}, 16)
	tried := 0
	for target, code := range targets {
		if tried++; tried > maxReached {
			x.warn(check, "only %d of %d were tried", maxReached, len(targets))
			break
		}
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if err := connects(x.ctx, out, target); err != nil {
				lock.Lock()
				defer lock.Unlock()
				failed = append(failed, fmt.Sprintf("%s (%s): %v", target, code, err))
			}
		})
	}
	wait.Wait()
	slices.Sort(failed)
	for _, says := range failed {
		x.wrong(check, "%s: check the address, the name server and the firewall", says)
	}
	if len(failed) == 0 && len(targets) > 0 {
		x.ok(check, "%d addresses can be reached", len(targets))
	}
}

var ports = map[string]string{"http": "80", "https": "443", "amqp": "5672", "amqps": "5671"}

func connects(ctx context.Context, out *egress.Client, target string) error {
	at, err := url.Parse(target)
	if err != nil {
		return err
	}
	address := at.Host
	if at.Port() == "" {
		address = net.JoinHostPort(at.Hostname(), ports[at.Scheme])
	}
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	dial := out.Dial
	if strings.HasSuffix(at.Scheme, "s") && at.Scheme != "kafkas" {
		dial = func(ctx context.Context, scheme, address string) (net.Conn, error) {
			return out.DialTLS(ctx, scheme, address, nil)
		}
	}
	conn, err := dial(ctx, at.Scheme, address)
	if err != nil {
		return err
	}
	return conn.Close()
}
