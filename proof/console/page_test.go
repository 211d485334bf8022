package console

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// patience is how long a step in the browser may take. The machine may be busy with other tests.
const patience = 60 * time.Second

// browser starts the one Chromium of all tests, with a directory of its own.
var browser = sync.OnceValues(func() (context.Context, error) {
	directory, err := os.MkdirTemp("", "console")
	if err != nil {
		return nil, err
	}
	flags := []chromedp.ExecAllocatorOption{
		chromedp.NoFirstRun, chromedp.NoSandbox, chromedp.Headless, chromedp.DisableGPU, chromedp.ExecPath(program),
		chromedp.UserDataDir(directory), chromedp.WindowSize(1360, 900),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("force-device-scale-factor", "1"),
	}
	allocator, kill := chromedp.NewExecAllocator(context.Background(), flags...)
	root, cancel := chromedp.NewContext(allocator)
	atEnd = append(atEnd, func() {
		cancel()
		kill()
		os.RemoveAll(directory)
	})
	return root, chromedp.Do(root)
})

var (
	program string   // of Chromium
	atEnd   []func() // of all tests
)

func TestMain(m *testing.M) {
	code := m.Run()
	for _, end := range atEnd {
		end()
	}
	os.Exit(code)
}

// tab is one page in the browser, as a visitor has it.
type tab struct {
	t    *testing.T
	ctx  context.Context
	base string
	dumb bool // its pages run no script, so no click can be noticed

	mu      sync.Mutex
	faults  []string
	allowed []string // parts of faults that the test expects
}

var locate sync.Once

// newTab opens an empty tab for the pages at base. When the test ends, it fails if anything went wrong in the tab.
func newTab(t *testing.T, base string) *tab {
	t.Helper()
	found := pgtest.Require(t, "chromium")
	locate.Do(func() { program = found })
	root, err := browser()
	require.NoError(t, err)
	p := &tab{t: t, base: base}
	ctx, closeTab := chromedp.NewContext(root, chromedp.WithNewBrowserContext(), chromedp.WithListener(p.watch))
	p.ctx = ctx
	require.NoError(t, chromedp.Do(ctx)) // the tab lives as long as the context of this
	p.do(command(network.Enable, network.EnableParams{}), command(log.Enable, cdp.Empty{}))
	t.Cleanup(func() {
		if t.Failed() {
			p.keep("failed-" + strings.NewReplacer("/", "-").Replace(t.Name()))
		}
		closeTab()
		p.mu.Lock()
		defer p.mu.Unlock()
		require.Empty(t, p.faults)
	})
	return p
}

// watch notes what must not happen in a page.
func (p *tab) watch(event any) {
	fault := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		fault = "exception: " + e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			fault += " " + e.ExceptionDetails.Exception.Description
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			var words []string
			for _, arg := range e.Args {
				words = append(words, string(arg.Value)+arg.Description)
			}
			fault = "console: " + strings.Join(words, " ")
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			fault = fmt.Sprintf("log: %s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err != nil || u.Scheme != "data" && !strings.HasPrefix(e.Request.URL, p.base) {
			fault = "a request to another host: " + e.Request.URL
		}
	}
	if fault == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, part := range p.allowed {
		if strings.Contains(fault, part) {
			return
		}
	}
	if len(p.faults) < 10 {
		p.faults = append(p.faults, fault)
	}
}

// allow expects faults that contain a text, such as the status of a refusal.
func (p *tab) allow(part string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allowed = append(p.allowed, part)
}

// do carries out steps, within patience.
func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	require.NoError(p.t, chromedp.Do(ctx, steps...))
}

// command makes a step of a command of the protocol.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// open loads a page, until its script is ready.
func (p *tab) open(path string) {
	p.t.Helper()
	p.do(chromedp.Navigate(p.base+path), chromedp.WaitReady(chromedp.CSS("html[data-ready]")))
}

// value evaluates an expression.
func value[T any](p *tab, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	require.NoError(p.t, err, expression)
	return v
}

// wait evaluates an expression that is a promise.
func wait[T any](p *tab, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(p.t, err)
	return v
}

// text is what an element shows. It needs no script of the page.
func (p *tab) text(selector string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Text(chromedp.CSS(selector)))
	require.NoError(p.t, err)
	return text
}

// until waits for an expression to be true, also over a load of another page.
func (p *tab) until(expression string) {
	p.t.Helper()
	end := time.Now().Add(patience)
	for {
		ctx, cancel := context.WithTimeout(p.ctx, patience)
		holds, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		cancel()
		if err == nil && holds {
			return
		}
		if time.Now().After(end) {
			require.NoError(p.t, err, expression)
			require.FailNow(p.t, "did not become true", expression)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// says waits for an element to contain a text.
func (p *tab) says(selector, text string) {
	p.t.Helper()
	p.until(fmt.Sprintf("(document.querySelector(%q)?.innerText ?? '').includes(%q)", selector, text))
}

// click clicks an element, once it is there. The page may replace it at any time, so it is known by its selector alone: what
// has its place is clicked. The page may also move it between the moment that it is found and the click: then it was not
// clicked, and is clicked again.
func (p *tab) click(selector string) {
	p.t.Helper()
	if p.dumb {
		p.do(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
		return
	}
	for missed := true; missed; {
		p.until(fmt.Sprintf(`(function () {
			var element = document.querySelector(%[1]q);
			if (!element?.checkVisibility()) return false;
			element.scrollIntoView({ block: "center", inline: "nearest", behavior: "instant" });
			var box = element.getBoundingClientRect();
			window.aim = { x: box.x + box.width / 2, y: box.y + box.height / 2, missed: true };
			if (!document.elementFromPoint(aim.x, aim.y)?.closest(%[1]q)) return false;
			addEventListener("click", function (e) { if (e.target.closest(%[1]q)) aim.missed = false; }, { capture: true, once: true });
			return true;
		})()`, selector))
		aim := value[struct{ X, Y float64 }](p, "window.aim ?? {}")
		p.do(chromedp.MouseClickXY(aim.X, aim.Y))
		// Another page, which the click has opened or is opening, has no such word.
		ctx, cancel := context.WithTimeout(p.ctx, patience)
		m, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("window.aim?.missed === true"))
		cancel()
		missed = err == nil && m
	}
}

// enter types a text into a field, once it is there. The page may replace a field between two keys.
func (p *tab) enter(selector, text string) {
	p.t.Helper()
	if p.dumb {
		p.do(chromedp.SendKeys(chromedp.CSS(selector), text))
		return
	}
	p.until(fmt.Sprintf("(document.querySelector(%[1]q)?.focus(), document.activeElement.matches(%[1]q))", selector))
	p.do(chromedp.KeyEvent(text))
}

// mark marks the page that is loaded: the mark is gone after another load.
var mark = chromedp.Evaluate[chromedp.Void](`void document.documentElement.setAttribute("data-old", "")`)

// shades are the two looks.
var shades = []string{"light", "dark"}

// shoot writes pictures of the page in both looks, if CONSOLE_SHOTS names a directory for them.
func (p *tab) shoot(name string) {
	p.t.Helper()
	if os.Getenv("CONSOLE_SHOTS") == "" {
		return
	}
	for _, shade := range shades {
		p.do(command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: shade}, {Name: "prefers-reduced-motion", Value: "reduce"}}}))
		p.keep("console-" + name + "-" + shade)
	}
	p.do(command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{}))
}

// maxShot is the largest picture that the documentation has.
const maxShot = 150 << 10

// fewColours returns a picture of 256 colours, with the nearest of them in place of others.
func fewColours(picture image.Image) image.Image {
	numbers := map[color.RGBA]int{}
	size := picture.Bounds()
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			numbers[color.RGBAModel.Convert(picture.At(x, y)).(color.RGBA)]++
		}
	}
	palette := choose(numbers, 256)
	nearest := map[color.RGBA]uint8{}
	for c := range numbers {
		nearest[c] = uint8(palette.Index(c))
	}
	out := image.NewPaletted(size, palette)
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			out.SetColorIndex(x, y, nearest[color.RGBAModel.Convert(picture.At(x, y)).(color.RGBA)])
		}
	}
	return out
}

// choose returns the most frequent colour, and then again and again the one that matters most: it is far from those that
// are chosen already, as that of a small dot is, or it is frequent.
func choose(numbers map[color.RGBA]int, limit int) color.Palette {
	colours := slices.SortedFunc(maps.Keys(numbers), func(a, b color.RGBA) int {
		return cmp.Or(numbers[b]-numbers[a], cmp.Compare(uint32(a.R)<<16|uint32(a.G)<<8|uint32(a.B), uint32(b.R)<<16|uint32(b.G)<<8|uint32(b.B)))
	})
	away := make([]float64, len(colours))
	for i := range away {
		away[i] = math.Inf(1)
	}
	var palette color.Palette
	for at := 0; len(palette) < min(limit, len(colours)); {
		palette = append(palette, colours[at])
		most := -1.0
		last := colours[at]
		for i, c := range colours {
			r, g, b := float64(c.R)-float64(last.R), float64(c.G)-float64(last.G), float64(c.B)-float64(last.B)
			away[i] = min(away[i], r*r+g*g+b*b)
			if weight := away[i] * math.Sqrt(float64(numbers[c])); weight > most {
				most, at = weight, i
			}
		}
	}
	return palette
}

// keep writes a picture of the window.
func (p *tab) keep(name string) {
	directory := os.Getenv("CONSOLE_SHOTS")
	if directory == "" {
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	shot, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Errorf("no picture of %s: %v", name, err)
		return
	}
	picture, err := png.Decode(bytes.NewReader(shot))
	require.NoError(p.t, err)
	var small bytes.Buffer
	require.NoError(p.t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, fewColours(picture)))
	require.NoError(p.t, os.MkdirAll(directory, 0o755))
	require.NoError(p.t, os.WriteFile(filepath.Join(directory, name+".png"), small.Bytes(), 0o644))
	require.LessOrEqual(p.t, small.Len(), maxShot, name)
}
