package alert

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/money"
	"backstop/internal/exception"

	"github.com/uptrace/bun"
)

// Limits of messages.
const (
	// apart is the least time between two messages of one rule: what comes in
	// between is gathered into the next.
	apart = time.Minute
	// maxLines is how many alerts one message names; it says how many more there
	// are.
	maxLines = 15
	// maxAnnounce bounds the alerts of one round.
	maxAnnounce = 500
)

// Style is how messages read.
type Style struct {
	Language string // "zh" or "en"
	Zone     *time.Location
	Console  string // URL that leads each message's link
	// Opened reads what is known of the breaker of the merchant that an alert is
	// about; nil = nothing but that it opened.
	Opened func(ctx context.Context, merchant string) (*Opened, error)

	opened map[string]*Opened // by subject, of one message
}

// Announce turns alerts that people have not heard of into messages, one of each
// rule and target, and returns the messages' ids. Without targets alerts are only
// shown in the console.
func Announce(ctx context.Context, d *db.DB, targets []string, style Style) (messages []int64, err error) {
	err = d.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		messages, err = announce(ctx, tx, d, targets, style)
		return err
	})
	return messages, err
}

func announce(ctx context.Context, tx db.Tx, d *db.DB, targets []string, style Style) ([]int64, error) {
	now := d.Now()
	var due []Alert
	err := tx.NewSelect().Model(&due).Where("al.announce_at <= ?", now).OrderExpr("al.announce_at, al.id").Limit(maxAnnounce).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read alerts to announce: %w", err)
	}
	if len(due) == 0 {
		return nil, nil
	}
	rules, err := Rules(ctx, tx)
	if err != nil {
		return nil, err
	}
	var written []int64
	for _, rule := range rules {
		var of []Alert
		for _, a := range due {
			if a.Rule == rule.Name {
				of = append(of, a)
			}
		}
		if len(of) == 0 || rule.NextMessageAt > now {
			continue
		}
		ids, err := announceRule(ctx, tx, d, rule, of, targets, style)
		if err != nil {
			return nil, err
		}
		written = append(written, ids...)
	}
	return written, nil
}

func announceRule(ctx context.Context, tx db.Tx, d *db.DB, rule Rule, alerts []Alert, targets []string, style Style) (messages []int64, err error) {
	now := d.Now()
	// The rule's row is the guard: of two nodes that announce at once the second
	// one finds it moved and leaves the alerts to the first.
	if _, err := tx.NewInsert().Model(&rule).On("CONFLICT DO NOTHING").Exec(ctx); err != nil {
		return nil, fmt.Errorf("keep the rule %s: %w", rule.Name, err)
	}
	res, err := tx.NewRaw("UPDATE alert_rules SET next_message_at = ? WHERE name = ? AND next_message_at = ?",
		now+apart.Microseconds(), rule.Name, rule.NextMessageAt).Exec(ctx)
	if err != nil {
		return nil, fmt.Errorf("take the turn of the rule %s: %w", rule.Name, err)
	}
	if n, _ := res.RowsAffected(); n == 0 {
		return nil, nil
	}
	ids := make([]int64, len(alerts))
	for i, a := range alerts {
		ids[i] = a.ID
	}
	if _, err := tx.NewRaw("UPDATE alerts SET announce_at = NULL WHERE id IN (?)", bun.List(ids)).Exec(ctx); err != nil {
		return nil, fmt.Errorf("mark alerts as announced: %w", err)
	}
	title, body := style.known(ctx, rule, alerts).compose(rule, alerts)
	for _, target := range targets {
		m := &Message{ID: d.NewID(), Target: target, Title: title, Body: body, Status: Waiting, NextAt: &now, CreatedAt: now}
		if _, err := tx.NewInsert().Model(m).Exec(ctx); err != nil {
			return nil, fmt.Errorf("write a message: %w", err)
		}
		messages = append(messages, m.ID)
	}
	return messages, nil
}

// compose writes one message about alerts of one rule.
func (s Style) compose(rule Rule, alerts []Alert) (title, body string) {
	title = "Backstop: " + s.say(ruleNames[rule.Name])
	var b strings.Builder
	if slices.Contains([]string{ExceptionOpened, DisputeOpened, NotifyExhausted}, rule.Name) {
		fmt.Fprintf(&b, "%s %s\n", s.clock(alerts[0]), s.kinds(alerts))
		alerts = nil
	}
	for i, a := range alerts {
		if i == maxLines {
			fmt.Fprintf(&b, s.say(wordMore)+"\n", len(alerts)-maxLines)
			break
		}
		fmt.Fprintf(&b, "%s %s\n", s.clock(a), s.line(rule, a))
	}
	fmt.Fprint(&b, strings.TrimSuffix(s.Console, "/"), ruleLinks[rule.Name])
	return title, b.String()
}

func (s Style) clock(a Alert) string {
	return time.UnixMicro(a.OpenedAt).In(s.Zone).Format("15:04:05 MST")
}

// kinds says how many exceptions of which kind there are, and their money, those
// about money first.
func (s Style) kinds(alerts []Alert) string {
	counts, sums := map[string]int64{}, map[string]money.Totals{}
	var subjects []string
	for _, a := range alerts {
		if counts[a.Subject] == 0 {
			subjects = append(subjects, a.Subject)
		}
		counts[a.Subject] += a.Count
		all := sums[a.Subject]
		all.Merge(a.Sums)
		sums[a.Subject] = all
	}
	slices.SortStableFunc(subjects, func(x, y string) int {
		return slices.Index(exception.Kinds, x) - slices.Index(exception.Kinds, y)
	})
	var parts []string
	for _, subject := range subjects {
		part := s.counted(subject, counts[subject])
		if amounts := sums[subject].List(); len(amounts) > 0 {
			part += fmt.Sprintf(s.say(wordAmounts), strings.Join(amounts, s.say(wordComma)))
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, s.say(wordComma))
}

// counted is a number of exceptions of a kind.
func (s Style) counted(kind string, n int64) string {
	w, ok := kindNames[kind]
	if !ok {
		w = kindName{kind, kind, kind}
	}
	if s.Language != "en" {
		return fmt.Sprintf("%d 笔%s", n, w.zh)
	}
	if n == 1 {
		return "1 " + w.one
	}
	return fmt.Sprintf("%d %s", n, w.many)
}

// line says one alert in a sentence.
func (s Style) line(rule Rule, a Alert) string {
	down := isSwitch(a.Rule)
	switch {
	case s.opened[a.Subject] != nil:
		return s.breakerLine(s.opened[a.Subject])
	case a.Rule == OurFault:
		return s.fault(a)
	case a.Rule == NodesDiffer && a.State == Firing:
		return fmt.Sprintf(s.say(wordDiffer), s.subject(a.Subject))
	case a.Rule == NodesDiffer:
		return fmt.Sprintf(s.say(wordAgree), s.subject(a.Subject))
	case a.Rule == WrongKey && a.State == Firing:
		return fmt.Sprintf(s.say(wordWrongKey), a.Subject)
	case a.State == Happened:
		return fmt.Sprintf(s.say(wordHappened), a.Subject, a.Count)
	case a.State == Resolved && down:
		return fmt.Sprintf(s.say(wordUp), a.Subject)
	case down:
		return fmt.Sprintf(s.say(wordDown), a.Subject)
	case a.State == Resolved:
		return fmt.Sprintf(s.say(wordResolved), a.Subject, Level(a.Rule, a.Value))
	}
	return fmt.Sprintf(s.say(wordFiring), a.Subject, Level(a.Rule, a.Value), Level(a.Rule, rule.Fire))
}

// fault says what waits for a fault of ours, and what to do.
func (s Style) fault(a Alert) string {
	count := Level(a.Rule, a.Value)
	for _, m := range a.Sums {
		count += ", " + m.Currency + " " + money.Format(m.Minor, m.Currency)
	}
	if a.State == Resolved {
		return fmt.Sprintf(s.say(wordFaultOver), s.subject(a.Subject), count)
	}
	return fmt.Sprintf(s.say(wordFault), s.subject(a.Subject), count)
}

// subject is what an alert is about where that has words of its own.
func (s Style) subject(subject string) string { return Subject(subject, s.Language) }

// Subject is what an alert is about, in "zh" or "en".
func Subject(subject, language string) string {
	if w, ok := subjects[subject]; ok {
		return Style{Language: language}.say(w)
	}
	return subject
}

// Level writes a level in its rule's unit.
func Level(rule string, v int64) string {
	switch rule {
	case SuccessRate, ErrorRate:
		return fmt.Sprintf("%d.%02d %%", v/100, v%100)
	case AnswerTime, SlowMerchant, ClockSkew:
		return (time.Duration(v) * time.Millisecond).String()
	case OurFault:
		return fmt.Sprint(v / 100)
	case SupplierSilent, DatabaseDown, RedisDown, WrongKey, NodesDiffer:
		return fmt.Sprintf("%d %%", v)
	}
	return fmt.Sprint(v)
}
