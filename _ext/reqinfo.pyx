"""Request path and query to RequestInfo, in one pass over each.

The rules are those of the reference's request info resolver: positional, with no knowledge of which resources exist.
Authorization looks at the result before any route is searched, so nothing here may depend on the router.
"""

cimport cython


class ParseError(ValueError):
    """A request line that cannot be interpreted; `code` is 400 (malformed target) or 500 (no kind in the path)."""

    def __init__(self, message, code=400):
        super().__init__(message)
        self.code = code


@cython.final
cdef class RequestInfo:
    """What a request asks for, in Kubernetes terms. Shared between requests: never changed after `parse`."""

    cdef readonly bint is_resource_request
    cdef readonly str path
    cdef readonly str verb
    cdef readonly str api_prefix
    cdef readonly str api_group
    cdef readonly str api_version
    cdef readonly str namespace
    cdef readonly str resource
    cdef readonly str subresource
    cdef readonly str name
    cdef readonly tuple parts
    cdef readonly dict query
    cdef readonly str label_selector
    cdef readonly str field_selector

    def __cinit__(self):
        self.path = self.verb = self.api_prefix = self.api_group = self.api_version = ""
        self.namespace = self.resource = self.subresource = self.name = ""
        self.label_selector = self.field_selector = ""
        self.parts = ()
        self.query = {}

    def first(self, str name not None, str default not None=""):
        """First value of a query parameter."""
        values = self.query.get(name)
        return values[0] if values is not None else default

    def __repr__(self):
        return f"<RequestInfo {self.verb} {self.path!r}>"


cdef inline int _hex(unsigned char c) noexcept:
    if c'0' <= c <= c'9':
        return c - c'0'
    if c'a' <= c <= c'f':
        return c - c'a' + 10
    if c'A' <= c <= c'F':
        return c - c'A' + 10
    return -1


cdef str unquote(str text, bint plus):
    """Percent-decode; None when an escape is malformed. Bytes that are not UTF-8 become U+FFFD."""
    cdef bytes raw = text.encode("utf-8", "surrogateescape")
    cdef const unsigned char[::1] view = raw
    cdef Py_ssize_t size = len(raw)
    cdef bytearray out = bytearray(size)
    cdef unsigned char[::1] target = out
    cdef Py_ssize_t i = 0
    cdef Py_ssize_t n = 0
    cdef unsigned char c
    cdef int high
    cdef int low
    while i < size:
        c = view[i]
        if c == c'%':
            if i + 2 >= size:
                return None
            high = _hex(view[i + 1])
            low = _hex(view[i + 2])
            if high < 0 or low < 0:
                return None
            c = <unsigned char>(high * 16 + low)
            i += 2
        elif c == c'+' and plus:
            c = c' '
        target[n] = c
        n += 1
        i += 1
    return bytes(out[:n]).decode("utf-8", "replace")



cdef str _component(str text):
    """One key or value of a query; None when an escape is malformed."""
    if "%" in text or "+" in text:
        return unquote(text, True)
    return text


cpdef dict parse_query(str query):
    """Query parameters in order of arrival, decoded as Go's `url.ParseQuery` does when its error is ignored.

    A pair with a malformed escape or a semicolon is dropped, the others are kept.
    """
    cdef dict values = {}
    cdef str pair
    cdef str key
    cdef str value
    cdef list known
    if not query:
        return values
    for pair in query.split("&"):
        if not pair or ";" in pair:
            continue
        key, _, value = pair.partition("=")
        key = _component(key)
        if key is None:
            continue
        value = _component(value)
        if value is None:
            continue
        known = values.get(key)
        if known is None:
            values[key] = [value]
        else:
            known.append(value)
    return values


cdef bint _scan(str text) except -1:
    """True when there is an escape to decode; a control character makes the whole request line invalid."""
    cdef Py_UCS4 c
    cdef bint escaped = False
    for c in text:
        if c < 0x20 or c == 0x7F:
            raise ParseError("400 Bad Request")
        if c == u'%':
            escaped = True
    return escaped


cdef bint _is_int64(str text) except -1:
    """Whether Go's `strconv.ParseInt(text, 10, 64)` takes it."""
    cdef str digits = text[1:] if text[:1] in ("+", "-") else text
    cdef Py_UCS4 c
    if not digits:
        return False
    for c in digits:
        if c < u'0' or c > u'9':
            return False
    digits = digits.lstrip("0")
    if len(digits) > 19:
        return False
    number = int(digits or "0")
    return number <= (9223372036854775808 if text[0] == u"-" else 9223372036854775807)


cdef str _unescape_value(str text):
    """Value of a field selector term; None when it is malformed."""
    cdef list out
    cdef bint escaped = False
    cdef Py_UCS4 c
    if "\\" not in text and "=" not in text:
        return text
    out = []
    for c in text:
        if escaped:
            if c not in u"\\,=":
                return None
            out.append(c)
            escaped = False
        elif c == u'\\':
            escaped = True
        elif c == u'=':
            return None
        else:
            out.append(c)
    return None if escaped else "".join(out)


cdef list _terms(str selector):
    """Split at commas that no backslash precedes."""
    cdef list terms = []
    cdef Py_ssize_t start = 0
    cdef Py_ssize_t i = 0
    cdef bint escaped = False
    cdef Py_UCS4 c
    if "\\" not in selector:
        return selector.split(",")
    for c in selector:
        if escaped:
            escaped = False
        elif c == u'\\':
            escaped = True
        elif c == u',':
            terms.append(selector[start:i])
            start = i + 1
        i += 1
    terms.append(selector[start:])
    return terms


cdef str _exact_name(str selector):
    """The name a field selector demands with `metadata.name=`; "" when it demands none or does not parse."""
    cdef str found = None
    cdef str term
    cdef str value
    cdef bint negated
    cdef Py_ssize_t at
    for term in _terms(selector):
        if not term:
            continue
        at = term.find("=")
        if at < 0:
            return ""
        # The first of "!=", "==" and "=" splits the term, the rest is value.
        if at > 0 and term[at - 1] == u"!":
            negated = True
            value = term[at + 1:]
        else:
            negated = False
            value = term[at + 2:] if term[at + 1:at + 2] == "=" else term[at + 1:]
        value = _unescape_value(value)
        if value is None:
            return ""
        if found is None and not negated and term[:at] == "metadata.name":
            found = value
    if found is None or found == "." or found == ".." or "/" in found or "%" in found:
        return ""
    return found


cdef bint _truthy(list values) except -1:
    """Only absence, "0" and "false" in any case mean false; an empty value is true."""
    return values is not None and values[0].lower() not in ("false", "0")


cdef int _collection(RequestInfo info) except -1:
    """A GET without a name: list or watch, and the name its field selector carries."""
    cdef str option
    cdef list values
    info.verb = "watch" if _truthy(info.query.get("watch")) else "list"
    for option in ("limit", "timeoutSeconds"):
        values = info.query.get(option)
        if values is not None and not _is_int64(values[0]):
            return 0
    values = info.query.get("fieldSelector")
    if values is not None:
        info.name = _exact_name(values[0])
    return 0


cdef str _method_verb(str method):
    if method == "GET" or method == "HEAD":
        return "get"
    if method == "POST":
        return "create"
    if method == "PUT":
        return "update"
    if method == "PATCH":
        return "patch"
    if method == "DELETE":
        return "delete"
    return ""


cdef int _resource(RequestInfo info, list parts, Py_ssize_t at, str method) except -1:
    """Fill in everything from the version on; `at` is its index and at least one part follows it."""
    cdef Py_ssize_t count = len(parts)
    cdef bint prefixed = False
    cdef Py_ssize_t left
    info.is_resource_request = True
    info.api_version = parts[at]
    at += 1
    if parts[at] == "watch" or parts[at] == "proxy":
        if at + 1 >= count:
            raise ParseError("unable to determine kind and namespace from url", 500)
        info.verb = parts[at]
        at += 1
        prefixed = True
    else:
        info.verb = _method_verb(method)
    if parts[at] == "namespaces" and count - at > 1:
        info.namespace = parts[at + 1]
        # A namespace's own subresources are the only words that cannot be a resource at this place.
        if count - at > 2 and parts[at + 2] != "status" and parts[at + 2] != "finalize":
            at += 2
    info.parts = tuple(parts[at:])
    left = count - at
    info.resource = parts[at]
    if left >= 2:
        info.name = parts[at + 1]
    if left >= 3 and info.verb != "proxy":
        info.subresource = parts[at + 2]
    if not info.name:
        if info.verb == "get":
            _collection(info)
        elif info.verb == "delete":
            info.verb = "deletecollection"
    # The deprecated prefixes support selectors only in part, so they never count for authorization.
    if not prefixed and (info.verb == "list" or info.verb == "watch" or info.verb == "deletecollection"):
        info.field_selector = info.first("fieldSelector")
        info.label_selector = info.first("labelSelector")
    return 0


def parse(str method not None, str path not None, str query not None):
    """Parse one request; raises ParseError."""
    cdef RequestInfo info = RequestInfo.__new__(RequestInfo)
    cdef str trimmed
    cdef list parts
    if not path.startswith("/") and path != "*":
        raise ParseError("400 Bad Request")
    if _scan(path):
        path = unquote(path, False)
        if path is None:
            raise ParseError("400 Bad Request")
    _scan(query)
    info.path = path
    info.query = parse_query(query)
    trimmed = path.strip("/")
    parts = trimmed.split("/")
    if len(parts) >= 3 and parts[0] == "api":
        info.api_prefix = "api"
        _resource(info, parts, 1, method)
    elif len(parts) >= 3 and parts[0] == "apis":
        info.api_prefix = "apis"
        if len(parts) >= 4:
            info.api_group = parts[1]
            _resource(info, parts, 2, method)
        else:
            info.verb = method.lower()
    else:
        info.verb = method.lower()
    return info
