package closest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/closest"
)

func TestName_ProposesWhatWasLikelyMeant(t *testing.T) {
	t.Parallel()
	names := []string{"booking_sms", "booking_mails", "pay"}
	for wrong, want := range map[string]string{
		"bokking_sms": "booking_sms", "booking_sm": "booking_sms", "Booking_Mails": "booking_mails", "pai": "pay",
		"invoices": "", "": "", "p": "", "q": "", "pya": "pay", "apy": "pay", "yap": "",
	} {
		require.Equal(t, want, closest.Name(wrong, names), wrong)
	}
}
