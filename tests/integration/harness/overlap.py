"""Two instances never act at the same time: read from what applications and clients saw."""


def assert_no_overlap(*apps):
    """Merges what the applications got: fencing tokens never fall, each belongs to one app, and so
    no two terms overlap. Returns [(token, app, first time, last time)]."""
    seen = sorted((s for app in apps for s in app.seen), key=lambda s: s.at)
    terms = []
    for s in seen:
        assert s.token > 0, f"a request without a fencing token reached an application: {s}"
        if terms and terms[-1][0] == s.token:
            assert terms[-1][1] == s.app, f"two applications served under one token: {terms[-1]}, {s}"
            terms[-1][3] = s.at
            continue
        assert not terms or s.token > terms[-1][0], \
            f"served under token {s.token} after {terms[-1][0]}: {s}, last of that: {terms[-1]}"
        terms.append([s.token, s.app, s.at, s.at])
    return [tuple(t) for t in terms]


def assert_responses_do_not_overlap(*clients):
    """The same from outside: once any client had an answer under a token, no request sent after that
    was answered 2xx under a lower one. Returns [(token, first sent, last received)]."""
    oks = sorted((r for client in clients for r in client.oks()), key=lambda r: r.sent)
    answered = sorted(oks, key=lambda r: r.received)
    spans = {}
    highest, next_answer = 0, 0
    for r in oks:
        while next_answer < len(answered) and answered[next_answer].received < r.sent:
            highest = max(highest, answered[next_answer].token)
            next_answer += 1
        assert r.token >= highest, f"{r} was answered under {r.token} after {highest} was seen"
        first, last = spans.get(r.token, (r.sent, r.received))
        spans[r.token] = (first, max(last, r.received))
    return [(token, first, last) for token, (first, last) in sorted(spans.items())]
