package webhook

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

func TestRefuse_BlocksWhatIsNotPublicInAllItsForms(t *testing.T) {
	t.Parallel()
	for _, ip := range []string{
		"127.0.0.1", "127.255.0.1", "0.0.0.0", "0.1.2.3", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", // own networks
		"100.64.0.1", "100.127.255.255", "192.0.0.191", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "203.0.113.1",
		"::", "::1", "fc00::1", "fdff::1", "ff02::1", "fec0::1", "2001:db8::1", "2001::1", "100::1", "5f00::1", "3fff::1",
		"::ffff:127.0.0.1", "::ffff:10.1.2.3", "::127.0.0.1", "::ffff:0:10.1.2.3", // IPv4 in IPv6
		"64:ff9b::127.0.0.1", "64:ff9b::10.1.2.3", "64:ff9b::100.64.0.1", "64:ff9b:1::8.8.8.8", "64:ff9b:1:a01:2:300::", "2002:7f00:1::1", "2002:a01:203::1",
	} {
		err := refuse(true)("tcp", net.JoinHostPort(ip, "443"), nil)
		require.ErrorContains(t, err, "block_private", ip)
		require.NoError(t, refuse(false)("tcp", net.JoinHostPort(ip, "443"), nil), ip)
	}
	for _, ip := range []string{
		"8.8.8.8", "172.15.255.255", "172.32.0.1", "100.63.255.255", "100.128.0.1", "192.0.1.1", "223.255.255.255", "11.0.0.1",
		"2606:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1",
	} {
		require.NoError(t, refuse(true)("tcp", net.JoinHostPort(ip, "443"), nil), ip)
	}
}

func TestRefuse_NeverReachesMetadataServices(t *testing.T) {
	t.Parallel()
	for _, ip := range []string{
		"169.254.169.254", "169.254.170.2", "169.254.170.23", "169.254.0.1", "fd00:ec2::23", "192.0.0.192", "::ffff:192.0.0.192", "64:ff9b::192.0.0.192",
		"64:ff9b::100.100.100.200", "64:ff9b::168.63.129.16", "::ffff:100.100.100.200", "::ffff:169.254.169.254", "fe80::1", "fe80::1%eth0", "fd00:ec2::254", "fd20:ce::254", "100.100.100.200",
		"168.63.129.16", "64:ff9b::169.254.169.254", "64:ff9b:1::169.254.169.254", "64:ff9b:1:a9fe:a9:fe00::", "2002:a9fe:a9fe::1",
		"::169.254.169.254", "::ffff:0:169.254.169.254",
	} {
		for _, block := range []bool{false, true} {
			require.ErrorContains(t, refuse(block)("tcp", net.JoinHostPort(ip, "80"), nil), "cloud credentials", ip)
		}
	}
}

func TestDeliver_BlockPrivateSeesTheAddressThatANameResolvesTo(t *testing.T) {
	t.Parallel()
	server := answer(t, http.StatusOK, nil, "")
	named := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	require.NoError(t, newSink(t, Config{URL: named}).Deliver(t.Context(), delivery()))
	err := newSink(t, Config{URL: named, BlockPrivate: true}).Deliver(t.Context(), delivery())
	require.ErrorContains(t, err, "nothing was sent")
	require.ErrorContains(t, err, "block_private")
	require.False(t, processor.IsPermanent(err), "the name may lead elsewhere later")
	require.False(t, outcome.IsUnknown(err))
}

func TestDeliver_BlockPrivateHoldsForTheProbeToo(t *testing.T) {
	t.Parallel()
	origin, requests := record(t)
	d := delivery()
	d.Unknown = true
	err := newSink(t, Config{URL: origin, BlockPrivate: true, Probe: "GET /{{.ID}}"}).Deliver(t.Context(), d)
	require.ErrorContains(t, err, "block_private")
	require.Empty(t, requests())
}
