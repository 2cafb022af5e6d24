"""Functions of Kubernetes and of the extensions it takes in; values from their documentation and from recordings."""

from __future__ import annotations

from typing import Any

import pytest

from fastapi_core import cel
from fastapi_core.cel.errors import InstantiationError
from fastapi_core.cel.functions import AUTHORIZER, RESOURCE_CHECK
from fastapi_core.cel.library.authorizer import Answer, AuthorizerValue, Check, WaitingError
from fastapi_core.cel.types import DYN

ENVIRONMENT = cel.Environment({"d": DYN})
VALUES = {"d": {"l": [3, 1, 2], "s": "text"}}

STRINGS = {
    "'hello'.charAt(4)": "o",
    "'hello'.charAt(5)": "",
    "'hello mellow'.indexOf('ello')": 1,
    "'hello mellow'.indexOf('ello', 2)": 7,
    "'hello mellow'.indexOf('jello')": -1,
    "'hello'.indexOf('')": 0,
    "'hello'.indexOf('', 9)": 5,
    "'hello mellow'.lastIndexOf('ello')": 7,
    "'hello mellow'.lastIndexOf('ello', 6)": 1,
    "'hello'.lastIndexOf('')": 5,
    "'TacoCat \u00c0'.lowerAscii()": "tacocat \u00c0",
    "'TacoCat'.upperAscii()": "TACOCAT",
    "'hello hello'.replace('he', 'we')": "wello wello",
    "'hello hello'.replace('he', 'we', 1)": "wello hello",
    "'hello'.replace('', '_')": "_h_e_l_l_o_",
    "'hello hello'.replace('he', 'we', 0)": "hello hello",
    "'a b c'.split(' ')": ["a", "b", "c"],
    "'a b c'.split(' ', 2)": ["a", "b c"],
    "'a b c'.split(' ', 0)": [],
    "'abc'.split('')": ["a", "b", "c"],
    "'tacocat'.substring(4)": "cat",
    "'tacocat'.substring(0, 4)": "taco",
    "'  trim\\n    '.trim()": "trim",
    "['x', 'y'].join()": "xy",
    "['x', 'y'].join('-')": "x-y",
    "[].join()": "",
    "strings.quote('a\"b\\n')": '"a\\"b\\n"',
    "'abc 123'.find('[0-9]+')": "123",
    "'abc 123'.find('xyz')": "",
    "'123 abc 456'.findAll('[0-9]+')": ["123", "456"],
    "'123 abc 456'.findAll('[0-9]+', 1)": ["123"],
    "'abc'.findAll('x*')": ["", "", "", ""],
}
FORMATS = {
    "'%s, %d %%'.format(['a', 3])": "a, 3 %",
    "'%.2f'.format([3.14159])": "3.14",
    "'%f'.format([1234.5])": "1,234.500000",
    "'%x %X'.format([255, 255])": "ff FF",
    "'%x'.format(['hi'])": "6869",
    "'%b %b'.format([5, true])": "101 1",
    "'%o'.format([8])": "10",
    "'%s'.format([[1, 2]])": "[1, 2]",
    "'%s'.format([['a']])": '["a"]',
    "'%s'.format([{'b': 1, 'a': 2}])": '{"a":2, "b":1}',
    "'%s %s'.format([null, true])": "null true",
    "'%s'.format([duration('1h')])": "3600s",
    "'%s'.format([type(1)])": "int",
    "'%s'.format([1.5])": "1.5",
}
LISTS = {
    "[1, 3, 2].isSorted()": False,
    "['a', 'b'].isSorted()": True,
    "[1, 2, 3].sum()": 6,
    "[1.5, 2.0].sum()": 3.5,
    "[duration('1h'), duration('30m')].sum() == duration('90m')": True,
    "[1, 3, 2].min() + [1, 3, 2].max()": 4,
    "[1, 2, 2].indexOf(2)": 1,
    "[1, 2, 2].lastIndexOf(2)": 2,
    "[1].indexOf(5)": -1,
    "[1, 2, 3, 4].slice(1, 3)": [2, 3],
    "[[1], [2, 3]].flatten()": [1, 2, 3],
    "[dyn(1), dyn([2, 3])].flatten(2)": [1, 2, 3],
    "[3, 1, 2].sort()": [1, 2, 3],
    "d.l.sort()": [1, 2, 3],
    "['bb', 'a'].sortBy(x, x.size())": ["a", "bb"],
    "lists.range(3)": [0, 1, 2],
    "[1, 2].reverse()": [2, 1],
    "[1, 2, 1].distinct()": [1, 2],
    "sets.contains([1, 2, 3], [2, 1])": True,
    "sets.equivalent([1, 2, 2], [2, 1])": True,
    "sets.intersects([1], [2])": False,
}
NUMBERS = {
    "isQuantity('1.5Gi') && !isQuantity('x')": True,
    "quantity('1Gi').isGreaterThan(quantity('1G'))": True,
    "quantity('500m').isLessThan(quantity('1'))": True,
    "quantity('1k').compareTo(quantity('1000'))": 0,
    "quantity('1000') == quantity('1k')": True,
    "quantity('1').add(quantity('500m')).asApproximateFloat()": 1.5,
    "quantity('10').sub(3).asInteger()": 7,
    "quantity('1500m').isInteger()": False,
    "sign(quantity('-5'))": -1,
    "isSemver('1.2.3') && !isSemver('1.2') && isSemver('v1.2', true)": True,
    "semver('1.2.0-rc.1').isLessThan(semver('1.2.0'))": True,
    "semver('1.10.0').isGreaterThan(semver('1.9.0'))": True,
    "semver('1.2.3').major() + semver('1.2.3').minor() + semver('1.2.3').patch()": 6,
    "semver('1.0.0+a').compareTo(semver('1.0.0+b'))": 0,
    "semver('v01.02', true) == semver('1.2.0')": True,
}
NETWORKS = {
    "isIP('10.0.0.1') && isIP('::1') && !isIP('10.0.0.01') && !isIP('::ffff:1.2.3.4')": True,
    "ip('10.0.0.1').family() + ip('::1').family()": 10,
    "ip.isCanonical('::1') && !ip.isCanonical('0::1')": True,
    "ip('127.0.0.1').isLoopback() && ip('0.0.0.0').isUnspecified()": True,
    "ip('224.0.0.1').isLinkLocalMulticast() && ip('169.254.1.1').isLinkLocalUnicast()": True,
    "ip('192.168.1.1').isGlobalUnicast() && !ip('255.255.255.255').isGlobalUnicast()": True,
    "string(ip('2001:DB8::1'))": "2001:db8::1",
    "ip('1.2.3.4') == ip('1.2.3.4')": True,
    "isCIDR('10.0.0.0/8') && !isCIDR('10.0.0.0')": True,
    "cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))": True,
    "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.1.0.0/16').containsCIDR('10.0.0.0/8')": True,
    "string(cidr('10.1.2.3/8').masked())": "10.0.0.0/8",
    "cidr('10.0.0.0/8').prefixLength()": 8,
    "string(cidr('10.1.2.3/8').ip())": "10.1.2.3",
    "isURL('https://a.example:8443/p') && !isURL('../x') && isURL('/abs')": True,
    "url('https://u:p@a.example:8443/p/q?k=v&k=w&e').getHost()": "a.example:8443",
    "url('https://a.example:8443/p').getHostname()": "a.example",
    "url('https://[::1]:80/').getHostname()": "::1",
    "url('https://a.example:8443/p').getPort()": "8443",
    "url('HTTPS://a/').getScheme()": "https",
    "url('https://a/with%20space').getEscapedPath()": "/with%20space",
    "url('https://a/?k=v&k=w&e').getQuery()": {"k": ["v", "w"], "e": [""]},
    "format.dns1123Label().validate('good-1').hasValue()": False,
    "format.dns1123Label().validate('Bad_').hasValue()": True,
    "format.named('uuid').value().validate('f0e1d2c3-0000-4000-8000-0123456789ab').hasValue()": False,
    "format.named('nope').hasValue()": False,
    "format.byte().validate('a').value()": ["invalid base64"],
    "format.date().validate('2021-02-30').value()": ["invalid date"],
    "format.datetime().validate('2021-02-03T04:05:06Z').hasValue()": False,
    "format.dns1123LabelPrefix().validate('name-').hasValue()": False,
    "format.uri().validate('x').value()": ['parse "x": invalid URI for request'],
}
TABLE: dict[str, Any] = {**STRINGS, **FORMATS, **LISTS, **NUMBERS, **NETWORKS}


@pytest.mark.parametrize("text", TABLE)
def test_value(text: str) -> None:
    assert cel.compile_expression(text, ENVIRONMENT).evaluate(VALUES) == TABLE[text]


ERRORS = {
    "'hello'.charAt(6)": "index out of range: 6",
    "'hello'.indexOf('a', -1)": "index out of range: -1",
    "'hello'.substring(9)": "index out of range: 9",
    "'hello'.substring(3, 2)": "invalid substring range. start: 3, end: 2",
    "[1, 2].slice(1, 3)": "cannot slice(1, 3), list is length 2",
    "[1, 2].slice(-1, 1)": "cannot slice(-1, 1), negative indexes not supported",
    "d.l.filter(x, false).max()": "max called on empty list",
    "quantity('x')": "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    "quantity('1.5').asInteger()": "cannot convert value to integer",
    "semver('1.2')": "No Major.Minor.Patch elements found",
    "semver('01.2.3')": 'Major number must not contain leading zeroes "01"',
    "ip('x')": 'IP Address "x" parse error during conversion from string: ParseAddr("x"): unable to parse IP',
    "ip('1.2.3')": (
        'IP Address "1.2.3" parse error during conversion from string: ParseAddr("1.2.3"): IPv4 address too short'
    ),
    "ip('::ffff:1.2.3.4')": 'IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed',
    "ip('fe80::1%eth0')": 'IP address "fe80::1%eth0" with zone value is not allowed',
    "cidr('1.2.3.4')": (
        "network address parse error during conversion from string: network address parse error during conversion from"
        " string: netip.ParsePrefix(\"1.2.3.4\"): no '/'"
    ),
    "url('x')": 'URL parse error during conversion from string: parse "x": invalid URI for request',
    "'a'.find('(')": "error parsing regexp: missing closing ): `(`",
    "d.s.matches(d.s + '(')": "error parsing regexp: missing closing ): `text(`",
}


@pytest.mark.parametrize("text", ERRORS)
def test_error(text: str) -> None:
    with pytest.raises((cel.EvalError, InstantiationError)) as failure:
        cel.compile_expression(text, ENVIRONMENT).evaluate(VALUES)
    assert str(failure.value) == ERRORS[text]


def test_formats_that_are_no_constants_are_checked_when_they_run() -> None:
    program = cel.compile_expression("d.f.format(['a'])", ENVIRONMENT)
    with pytest.raises(cel.EvalError, match="decimal clause can only be used on integers, was given string"):
        program.evaluate({"d": {"f": "%d"}})
    with pytest.raises(cel.EvalError, match="unrecognized formatting clause"):
        program.evaluate({"d": {"f": "%q"}})
    assert program.evaluate({"d": {"f": "%s!"}}) == "a!"


def test_libraries_come_with_their_version() -> None:
    old = cel.Environment({}, version=(1, 27))
    for text in ("quantity('1')", "ip('::1')", "sets.contains([1], [1])", "[1].sort()", "semver('1.0.0')"):
        with pytest.raises(cel.CompileError, match="undeclared reference"):
            cel.compile_expression(text, old)
    assert cel.compile_expression("[1].sum() + [1].max()", old).evaluate({}) == 2


# The authorizer.


def ask(check: Check) -> Answer:
    if check.path:
        return Answer(check.path == "/healthz", "by path")
    if check.verb == "boom":
        return Answer(False, "", "the authorizer failed")
    return Answer(check.resource == "pods" and check.namespace == "ns", "by resource")


AUTHORIZED = cel.Environment({"authorizer": AUTHORIZER, "authorizer.requestResource": RESOURCE_CHECK})
_AUTHORIZER = AuthorizerValue(ask)
QUESTIONS = {
    "authorizer.path('/healthz').check('get').allowed()": True,
    "authorizer.path('/x').check('get').reason()": "by path",
    "authorizer.group('').resource('pods').namespace('ns').name('n').subresource('log').check('get').allowed()": True,
    "authorizer.group('apps').resource('deployments').check('get').allowed()": False,
    "authorizer.group('').resource('pods').check('boom').errored()": True,
    "authorizer.group('').resource('pods').check('boom').error()": "the authorizer failed",
    "authorizer.serviceAccount('ns', 'sa').group('').resource('pods').namespace('ns').check('get').allowed()": True,
    "authorizer.requestResource.check('create').allowed()": True,
    "authorizer.group('').resource('pods').fieldSelector('a=b').labelSelector('c').namespace('ns').check('list').allowed()": True,
}


@pytest.mark.parametrize("text", QUESTIONS)
def test_authorizer(text: str) -> None:
    values = {
        "authorizer": _AUTHORIZER,
        "authorizer.requestResource": _AUTHORIZER.request_resource("", "pods", "", "ns", "n"),
    }
    assert cel.compile_expression(text, AUTHORIZED).evaluate(values) == QUESTIONS[text]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("authorizer.path(' ').check('get').allowed()", "path must not be empty"),
        ("authorizer.group('').resource('').check('get').allowed()", "resource must not be empty"),
        ("authorizer.serviceAccount('ns', '_').path('/').check('get').allowed()", "Invalid service account name"),
        ("authorizer.serviceAccount('_', 'sa').path('/').check('get').allowed()", "Invalid service account namespace"),
    ],
)
def test_authorizer_errors(text: str, message: str) -> None:
    with pytest.raises(cel.EvalError, match=message):
        cel.compile_expression(text, AUTHORIZED).evaluate({"authorizer": _AUTHORIZER})


def test_waiting_is_not_absorbed() -> None:
    async def answer() -> None: ...

    def wait(check: Check) -> Answer:
        coroutine = answer()
        coroutine.close()
        raise WaitingError(check, coroutine)

    program = cel.compile_expression("authorizer.path('/x').check('get').allowed() || true", AUTHORIZED)
    with pytest.raises(WaitingError) as waiting:
        program.evaluate({"authorizer": AuthorizerValue(wait)})
    assert waiting.value.check.path == "/x"


# Mutating policies.


def test_patches() -> None:
    environment = cel.Environment({"object": DYN}, patches=True)
    text = "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b~c'), value: object.v}]"
    [patch] = cel.compile_expression(text, environment).evaluate({"object": {"v": [1]}})
    assert patch == {"op": "add", "path": "/metadata/labels/a~1b~0c", "value": [1]}
    assert patch.cel_type == "JSONPatch"
    text = "Object{metadata: Object.metadata{labels: {'a': 'b'}}, ?spec: optional.none()}"
    made = cel.compile_expression(text, environment).evaluate({"object": {}})
    assert made == {"metadata": {"labels": {"a": "b"}}}
    assert made["metadata"].cel_type == "Object.metadata"
    with pytest.raises(cel.EvalError, match="unexpected JSONPatchType field: ops"):
        cel.compile_expression("JSONPatch{ops: 'add'}", environment).evaluate({})
