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
	// apart is the minimum time between two messages of one rule; alerts in between go into the
	// next message.
	apart = time.Minute
	// maxLines is how many alerts one message lists; the others are counted.
	maxLines = 15
	// maxAnnounce bounds the alerts of one round.
	maxAnnounce = 500
)

// Style says how messages are written.
type Style struct {
	Language string // "zh" or "en"
	Zone     *time.Location
	Console  string // URL of the console, for the link in each message
	// Runbook returns the path in the console of what to do about a rule's alerts; nil = messages
	// name none.
	Runbook func(rule string) string
	// Opened reads the breaker of the merchant that an alert is about; nil = messages contain
	// no breaker details.
	Opened func(ctx context.Context, merchant string) (*Opened, error)

	// Supplier reads the breaker of the supplier that an alert is about and what waits for it;
	// nil = messages contain no supplier details.
	Supplier func(ctx context.Context, code string) (*Supplier, error)

	opened    map[string]*Opened   // by subject, for one message
	suppliers map[string]*Supplier // the same
}

// Announce turns unannounced alerts into messages, one for each rule and target, and returns
// the ids of the messages. Without targets alerts are only shown in the console.
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
	// Those of a rule that waits for its turn are left out: a storm of one rule would fill the round
	// and keep all others.
	err := tx.NewSelect().Model(&due).Where("al.announce_at <= ?", now).
		Where("al.rule NOT IN (SELECT r.name FROM alert_rules AS r WHERE r.next_message_at > ?)",
			now).OrderExpr("al.announce_at, al.id").Limit(maxAnnounce).Scan(ctx)
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
	byRule := map[string][]Alert{}
	if due, err = silence(ctx, tx, d, due); err != nil {
		return nil, err
	}
	for _, a := range due {
		byRule[a.Rule] = append(byRule[a.Rule], a)
	}
	var written []int64
	for _, rule := range rules {
		of := byRule[rule.Name]
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

func announceRule(ctx context.Context, tx db.Tx, d *db.DB, rule Rule, alerts []Alert, targets []string, style Style) (messages []int64,
	err error,
) {
	// The rule's row is the guard: if two nodes announce at once, the second finds it changed
	// and leaves the alerts to the first.
	if _, err := tx.NewInsert().Model(&rule).On("CONFLICT DO NOTHING").Exec(ctx); err != nil {
		return nil, fmt.Errorf("store the rule %s: %w", rule.Name, err)
	}
	res, err := tx.NewRaw("UPDATE alert_rules SET next_message_at = ? WHERE name = ? AND next_message_at = ?",
		d.Now()+apart.Microseconds(), rule.Name, rule.NextMessageAt).Exec(ctx)
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
	style = style.known(ctx, rule, alerts)
	messages, err = postMail(ctx, tx, d, targets, "", func(target string) (title, body string) { return style.message(target, rule, alerts) })
	if err != nil || len(messages) == 0 {
		return nil, err
	}
	var notified []IncidentEvent
	for _, a := range alerts {
		if a.IncidentID != 0 {
			notified = append(notified, IncidentEvent{IncidentID: a.IncidentID, Kind: EventNotified, Detail: strings.Join(targets, ", ")})
		}
	}
	return messages, keep(ctx, tx, d, notified...)
}

// silence takes out the alerts of incidents that send no messages, and records that none was
// sent.
func silence(ctx context.Context, tx db.Tx, d *db.DB, due []Alert) (rest []Alert, err error) {
	var of []int64
	for _, a := range due {
		of = append(of, a.IncidentID)
	}
	var silent []Incident
	err = tx.NewSelect().Model(&silent).Where("inc.id IN (?)", bun.List(of)).Where(IncidentMoves.In("inc.state", Acknowledged, Snoozed)).Scan(ctx)
	if err != nil {
		return nil, wrap("look for silent incidents", err)
	}
	by := make(map[int64]string, len(silent))
	for _, i := range silent {
		by[i.ID] = i.State
	}
	var ids []int64
	var events []IncidentEvent
	for _, a := range due {
		state, ok := by[a.IncidentID]
		if !ok {
			rest = append(rest, a)
			continue
		}
		ids = append(ids, a.ID)
		events = append(events, IncidentEvent{IncidentID: a.IncidentID, Kind: EventSilent, Detail: state})
	}
	if len(ids) == 0 {
		return rest, nil
	}
	if _, err := tx.NewRaw("UPDATE alerts SET announce_at = NULL WHERE id IN (?)", bun.List(ids)).Exec(ctx); err != nil {
		return nil, wrap("silence alerts", err)
	}
	return rest, keep(ctx, tx, d, events...)
}

// byKind are the rules about exceptions: the subject of their alerts is the kind.
var byKind = []string{ExceptionOpened, DisputeOpened, NotifyExhausted, CompensationDead, SupplierShort}

// compose writes one message about the alerts of one rule.
func (s Style) compose(rule Rule, alerts []Alert) (title, body string) {
	title = "Backstop: " + Title(rule.Name, s.Language)
	var b strings.Builder
	if slices.Contains(byKind, rule.Name) {
		fmt.Fprintf(&b, "%s %s\n", s.clock(alerts[0]), s.kinds(alerts))
		alerts = nil
	}
	for i, a := range alerts {
		if i == maxLines {
			fmt.Fprintf(&b, tMore.In(s.Language)+"\n", len(alerts)-maxLines)
			break
		}
		fmt.Fprintf(&b, "%s %s\n", s.clock(a), s.line(rule, a))
	}
	b.WriteString(s.link(rule.Name))
	if runbook := s.runbook(rule.Name); runbook != "" {
		fmt.Fprintf(&b, "\n"+tRunbook.In(s.Language), runbook)
	}
	return title, b.String()
}

// link is the page of the console that a rule's messages link to.
func (s Style) link(rule string) string {
	return strings.TrimSuffix(s.Console, "/") + ruleTexts[rule].link
}

// runbook is where the console says what to do; "" = nowhere.
func (s Style) runbook(rule string) string {
	if s.Runbook == nil {
		return ""
	}
	return strings.TrimSuffix(s.Console, "/") + s.Runbook(rule)
}

func (s Style) clock(a Alert) string {
	return time.UnixMicro(a.OpenedAt).In(s.Zone).Format("15:04:05 MST")
}

// kinds lists the number and money of exceptions by kind, those with money first.
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
			part += fmt.Sprintf(tAmounts.In(s.Language), strings.Join(amounts, tComma.In(s.Language)))
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, tComma.In(s.Language))
}

// counted formats a number of exceptions of a kind.
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

// proposals describes the waiting proposals; the subject is the age of the oldest.
func (s Style) proposals(a Alert) string {
	amounts := ""
	if all := a.Sums.List(); len(all) > 0 {
		amounts = fmt.Sprintf(tAmounts.In(s.Language), strings.Join(all, tComma.In(s.Language)))
	}
	return fmt.Sprintf(tProposals.In(s.Language), a.Count, amounts, a.Subject)
}

// due describes a dispute whose evidence is due soon; the subject says which, and when.
func (s Style) due(a Alert) string {
	return fmt.Sprintf(tDue.In(s.Language), a.Subject, s.sums(a.Sums))
}

// line describes one alert in a sentence.
func (s Style) line(rule Rule, a Alert) string {
	down := measureOf(a.Rule).onOff
	switch {
	case s.opened[a.Subject] != nil:
		return s.breakerLine(s.opened[a.Subject])
	case a.Rule == SupplierUnreachable, a.Rule == SupplierReachable:
		return s.supplierLine(a)
	case a.Rule == PayoutRefused:
		return s.refusedLine(a)
	case a.Rule == MerchantNegative:
		return s.negativeLine(a)
	case a.Rule == ProposalWaits:
		return s.proposals(a)
	case a.Rule == DisputeDue:
		return s.due(a)
	case a.Rule == OurFault:
		return s.fault(a)
	case a.Rule == StuckOrders:
		return s.stuck(a)
	case a.Rule == NodesDiffer && a.State == Firing:
		return fmt.Sprintf(tDiffer.In(s.Language), Subject(a.Subject, s.Language))
	case a.Rule == NodesDiffer:
		return fmt.Sprintf(tAgree.In(s.Language), Subject(a.Subject, s.Language))
	case a.Rule == QueuePaused && a.State == Firing:
		return fmt.Sprintf(tPaused.In(s.Language), Subject(a.Subject, s.Language))
	case a.Rule == QueuePaused:
		return fmt.Sprintf(tRunsAgain.In(s.Language), Subject(a.Subject, s.Language))
	case a.Rule == WrongKey && a.State == Firing:
		return fmt.Sprintf(tWrongKey.In(s.Language), a.Subject)
	case a.State == Happened:
		return fmt.Sprintf(tHappened.In(s.Language), a.Subject, a.Count)
	case a.State == Resolved && down:
		return fmt.Sprintf(tUp.In(s.Language), a.Subject)
	case down:
		return fmt.Sprintf(tDown.In(s.Language), a.Subject)
	case a.State == Resolved:
		return fmt.Sprintf(tResolved.In(s.Language), a.Subject, Level(a.Rule, a.Value))
	}
	return fmt.Sprintf(tFiring.In(s.Language), a.Subject, Level(a.Rule, a.Value), Level(a.Rule, rule.Fire))
}

// stuck describes how many orders are stuck, and their money.
func (s Style) stuck(a Alert) string {
	if a.State == Resolved {
		return fmt.Sprintf(tStuckOver.In(s.Language), Level(a.Rule, a.Value), s.sums(a.Sums))
	}
	return fmt.Sprintf(tStuck.In(s.Language), Level(a.Rule, a.Value), s.sums(a.Sums))
}

// fault describes what waits because of a fault of ours, and what to do about it.
func (s Style) fault(a Alert) string {
	count := Level(a.Rule, a.Value)
	for _, m := range a.Sums {
		count += ", " + m.Currency + " " + money.Format(m.Minor, m.Currency)
	}
	if a.State == Resolved {
		return fmt.Sprintf(tFaultOver.In(s.Language), Subject(a.Subject, s.Language), count)
	}
	return fmt.Sprintf(tFault.In(s.Language), Subject(a.Subject, s.Language), count)
}

// Subject returns what an alert is about, in "zh" or "en".
func Subject(subject, language string) string {
	if t, ok := subjects[subject]; ok {
		return t.In(language)
	}
	return subject
}
