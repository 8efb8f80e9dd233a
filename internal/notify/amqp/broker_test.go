//go:build unix

package amqp_test

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"backstop/internal/base/servertest"
	"backstop/internal/base/waittest"
	"backstop/internal/notify/fakemerchant"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// startTime bounds RabbitMQ's start: five seconds here, more on a busy machine.
const startTime = 60 * time.Second

// longestLife is longer than these tests may take together.
const longestLife = 5 * time.Minute

// broker is a RabbitMQ on loopback, with everything of its own in a folder.
type broker struct {
	plain, secure int // ports
	roots         *x509.CertPool
	command       *exec.Cmd
	dir           string
	epmd          int
}

// theBroker is started once, by the first test that needs it.
var theBroker = sync.OnceValues(func() (*broker, error) {
	b, err := startBroker()
	started = b
	return b, err
})

// started is what TestMain stops.
var started *broker

func needBroker(t testing.TB) *broker {
	t.Helper()
	servertest.Need(t)
	if _, err := os.Stat(serverBinary()); err != nil {
		t.Skip("RabbitMQ is not installed (Debian: apt-get install rabbitmq-server)")
	}
	b, err := theBroker()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// serverBinary is the server itself; the script in the PATH changes its user.
func serverBinary() string { return "/usr/lib/rabbitmq/bin/rabbitmq-server" }

func startBroker() (*broker, error) {
	dir, err := os.MkdirTemp("", "backstop-rabbit")
	if err != nil {
		return nil, err
	}
	b := &broker{dir: dir}
	ports, err := freePorts(4)
	if err != nil {
		return nil, err
	}
	b.plain, b.secure, b.epmd = ports[0], ports[1], ports[3]
	if err := b.configure(); err != nil {
		return nil, err
	}
	out, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }()
	// The bound ends the broker also where a test dies without stopping it.
	b.command = exec.Command("timeout", "-k", "5", strconv.Itoa(int(longestLife.Seconds())), serverBinary())
	b.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	b.command.Stdout, b.command.Stderr, b.command.Dir = out, out, dir
	b.command.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LANG=C.UTF-8",
		"RABBITMQ_MNESIA_BASE=" + filepath.Join(dir, "data"), "RABBITMQ_LOG_BASE=" + filepath.Join(dir, "log"),
		"RABBITMQ_NODENAME=backstop" + strconv.Itoa(os.Getpid()) + "@localhost", "RABBITMQ_DIST_PORT=" + strconv.Itoa(ports[2]),
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + filepath.Join(dir, "plugins"), "RABBITMQ_CONF_ENV_FILE=" + filepath.Join(dir, "none"),
		"RABBITMQ_CONFIG_FILE=" + filepath.Join(dir, "rabbitmq.conf"), "RABBITMQ_PID_FILE=" + filepath.Join(dir, "pid"),
		// Erlang's own port, too, is for loopback alone.
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}",
		"ERL_EPMD_PORT=" + strconv.Itoa(b.epmd), "ERL_EPMD_ADDRESS=127.0.0.1", "ERL_EPMD_RELAXED_COMMAND_CHECK=true",
	}
	if err := b.command.Start(); err != nil {
		return nil, err
	}
	if err := b.await(); err != nil {
		b.stop()
		return nil, err
	}
	return b, nil
}

// configure writes the configuration and the certificate.
func (b *broker) configure() error {
	certificate, roots, err := fakemerchant.Issue()
	if err != nil {
		return err
	}
	b.roots = roots
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		return err
	}
	at := func(name string) string { return filepath.Join(b.dir, name) }
	for name, content := range map[string][]byte{
		"cert.pem": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}),
		"key.pem":  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
		"rabbitmq.conf": fmt.Appendf(nil, "listeners.tcp.1 = 127.0.0.1:%d\nlisteners.ssl.1 = 127.0.0.1:%d\n"+
			"ssl_options.certfile = %s\nssl_options.keyfile = %s\nssl_options.cacertfile = %s\nssl_options.verify = verify_none\n",
			b.plain, b.secure, at("cert.pem"), at("key.pem"), at("cert.pem")),
	} {
		if err := os.WriteFile(at(name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// await waits until somebody can log in.
func (b *broker) await() error {
	var err error
	if waittest.Within(startTime, func() bool {
		var conn *amqp091.Connection
		if conn, err = amqp091.Dial(b.plainURL("guest:guest@")); err == nil {
			err = conn.Close()
		}
		return err == nil
	}) {
		return nil
	}
	output, _ := os.ReadFile(filepath.Join(b.dir, "output"))
	return fmt.Errorf("rabbitmq is not up after %s: %w\n%.2000s", startTime, err, output)
}

func (b *broker) stop() {
	// Its scripts start Erlang beside them: the whole group has to go.
	_ = syscall.Kill(-b.command.Process.Pid, syscall.SIGKILL)
	_ = b.command.Wait()
	// The port mapper that Erlang left running beside it.
	mapper := exec.Command("epmd", "-port", strconv.Itoa(b.epmd), "-kill")
	mapper.Env = append(os.Environ(), "ERL_EPMD_RELAXED_COMMAND_CHECK=true")
	_ = mapper.Run()
	_ = os.RemoveAll(b.dir)
}

func (b *broker) plainURL(login string) string {
	return fmt.Sprintf("amqp://%s127.0.0.1:%d/", login, b.plain)
}

func (b *broker) secureURL() string { return fmt.Sprintf("amqps://127.0.0.1:%d/", b.secure) }

// freePorts finds ports of loopback that nobody uses now.
func freePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
