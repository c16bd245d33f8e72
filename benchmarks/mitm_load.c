/*
 * The two ends of mitm.py, which must not be what it measures: a provider, and an agent that asks it for things.
 *
 *     cc -O2 -o mitm_load mitm_load.c -lssl -lcrypto -lpthread
 *     mitm_load provider CERTIFICATE KEY REAL_KEY          prints its port; ends with its standard input
 *     mitm_load agent PLACE CONNECT CA KEY WHAT COUNT [STREAMS GAP]
 *
 * PLACE is a path or a port of 127.0.0.1; CONNECT is the port to ask a tunnel to, or 0. WHAT is post (COUNT
 * requests on each of STREAMS connections), new (COUNT connections with one request each), events (STREAMS streams of COUNT events,
 * GAP microseconds apart) or idle (COUNT tunnels, until standard input ends). The agent prints the seconds that all took,
 * and the microseconds of each request or event.
 */
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define HOST "localhost"
#define FAIL(...) (fprintf(stderr, __VA_ARGS__), fprintf(stderr, "\n"), exit(1))
#define ANSWER                                                                                                         \
    "{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[{\"type\":\"text\","   \
    "\"text\":\"hello\"}],\"stop_reason\":\"end_turn\",\"usage\":{\"input_tokens\":10,\"output_tokens\":5}}"

static SSL_CTX *context;
static const char *place, *key;
static int tunnel;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

/* A connection, and what was read of it but not used. */
struct stream {
    SSL *ssl;
    int fd;
    size_t have;
    char data[65536];
};

static int more(struct stream *s) {
    int n = SSL_read(s->ssl, s->data + s->have, sizeof s->data - 1 - s->have);
    if (n <= 0) return 0;
    s->have += n;
    s->data[s->have] = 0;
    return 1;
}

static void use(struct stream *s, size_t n) {
    memmove(s->data, s->data + n, s->have - n + 1);
    s->have -= n;
}

/* Where the body begins; 0 if the connection ends. */
static size_t head(struct stream *s) {
    char *end;
    s->data[s->have] = 0;
    while (!(end = strstr(s->data, "\r\n\r\n")))
        if (!more(s)) return 0;
    return end + 4 - s->data;
}

static size_t length(const char *from) {
    const char *found = strcasestr(from, "\r\ncontent-length:");
    return found ? strtoul(found + 17, NULL, 10) : 0;
}

/* Whether the other side took it. */
static int put(struct stream *s, const char *data, size_t n) {
    return SSL_write(s->ssl, data, n) == (int)n;
}

static long member(const char *body, const char *name) {
    const char *found = strstr(body, name);
    return found ? strtol(found + strlen(name), NULL, 10) : 0;
}

/* The provider. Whoever is connected may go away at any time: that ends the connection only. */

static int events(struct stream *s, long count, long gap) {
    const char *begin = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    char event[512], chunk[600];
    double due = now();
    if (!put(s, begin, strlen(begin))) return 0;
    for (long i = 0; i < count; i++) {
        double wait = (due += gap / 1e6) - now();
        if (wait > 0) usleep(wait * 1e6);
        int n = sprintf(event,
                        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"t\":%.7f,"
                        "\"delta\":{\"type\":\"text_delta\",\"text\":\"hello world\"}}\n\n", now());
        if (!put(s, chunk, sprintf(chunk, "%x\r\n%s\r\n", n, event))) return 0;
    }
    return put(s, "0\r\n\r\n", 5);
}

static void *serve(void *fd) {
    struct stream *s = calloc(1, sizeof *s);
    char answer[1024];
    size_t at;
    int on = 1;
    setsockopt((int)(long)fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    s->ssl = SSL_new(context);
    SSL_set_fd(s->ssl, (int)(long)fd);
    if (SSL_accept(s->ssl) == 1)
        while ((at = head(s))) {
            size_t n = length(s->data);
            int known = strstr(s->data, key) != NULL;
            while (s->have < at + n && more(s)) continue;
            if (s->have < at + n) break;
            long count = member(s->data + at, "\"events\":"), gap = member(s->data + at, "\"gap\":");
            use(s, at + n);
            if (known && count) {
                if (!events(s, count, gap)) break;
                continue;
            }
            n = sprintf(answer, "HTTP/1.1 %s\r\ncontent-type: application/json\r\ndate: today\r\nrequest-id: req_1\r\n"
                        "content-length: %zu\r\n\r\n%s", known ? "200 OK" : "401 No", strlen(ANSWER), ANSWER);
            if (!put(s, answer, n)) break;
        }
    SSL_free(s->ssl);
    close((int)(long)fd);
    free(s);
    return NULL;
}

static void *accepting(void *listener) {
    for (;;) {
        int fd = accept((int)(long)listener, NULL, NULL);
        pthread_t thread;
        if (fd >= 0 && !pthread_create(&thread, NULL, serve, (void *)(long)fd)) pthread_detach(thread);
    }
    return NULL;
}

static int provide(char **arguments) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    pthread_t thread;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    context = SSL_CTX_new(TLS_server_method());
    key = arguments[2];
    if (SSL_CTX_use_certificate_chain_file(context, arguments[0]) != 1
        || SSL_CTX_use_PrivateKey_file(context, arguments[1], SSL_FILETYPE_PEM) != 1)
        FAIL("cannot use the certificate");
    if (bind(listener, (void *)&address, size) || listen(listener, 512)) FAIL("cannot listen");
    getsockname(listener, (void *)&address, &size);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    pthread_create(&thread, NULL, accepting, (void *)(long)listener);
    getchar();
    return 0;
}

/* The agent. */

static int reach(void) {
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1, is_path = place[0] == '/', fd = socket(is_path ? AF_UNIX : AF_INET, SOCK_STREAM, 0);
    strncpy(local.sun_path, place, sizeof local.sun_path - 1);
    address.sin_port = htons(atoi(place));
    if (is_path ? connect(fd, (void *)&local, sizeof local) : connect(fd, (void *)&address, sizeof address))
        FAIL("cannot connect to %s", place);
    if (!is_path) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static struct stream *begin(void) {
    char asked[256];
    struct stream *s = calloc(1, sizeof *s);
    s->fd = reach();
    if (tunnel) {
        sprintf(asked, "CONNECT " HOST ":%d HTTP/1.1\r\nHost: " HOST ":%d\r\n\r\n", tunnel, tunnel);
        if (write(s->fd, asked, strlen(asked)) < 0) FAIL("cannot ask");
        while (!strstr(s->data, "\r\n\r\n")) {
            int n = read(s->fd, s->data + s->have, 1024);
            if (n <= 0) FAIL("no tunnel");
            s->have += n;
        }
        if (!strstr(s->data, " 200 ")) FAIL("no tunnel: %s", s->data);
        memset(s->data, 0, s->have);
        s->have = 0;
    }
    s->ssl = SSL_new(context);
    SSL_set_fd(s->ssl, s->fd);
    SSL_set_tlsext_host_name(s->ssl, HOST);
    SSL_set1_host(s->ssl, HOST);
    if (SSL_connect(s->ssl) != 1) FAIL("no TLS with %s", place);
    return s;
}

static void end(struct stream *s) {
    SSL_shutdown(s->ssl);
    SSL_free(s->ssl);
    close(s->fd);
    free(s);
}

static void ask(struct stream *s, const char *body) {
    char request[4096];
    int written = put(s, request, sprintf(request,
        "POST /v1/messages HTTP/1.1\r\nHost: " HOST "\r\naccept: application/json\r\nuser-agent: agent/1\r\n"
        "x-stainless-lang: js\r\nx-stainless-os: Linux\r\nx-stainless-arch: x64\r\nx-stainless-runtime: node\r\n"
        "x-stainless-runtime-version: v20\r\nx-stainless-package-version: 0.60\r\nx-stainless-retry-count: 0\r\n"
        "x-stainless-timeout: 600\r\nanthropic-version: 2023-06-01\r\nanthropic-beta: a,b\r\n"
        "content-type: application/json\r\naccept-encoding: gzip, br\r\nconnection: keep-alive\r\n"
        "x-api-key: %s\r\ncontent-length: %zu\r\n\r\n%s", key, strlen(body), body));
    if (!written) FAIL("cannot write");
}

static void post(struct stream *s) {
    size_t at, n;
    ask(s, "{\"model\":\"m\",\"max_tokens\":50,\"messages\":[{\"role\":\"user\",\"content\":\"What is the weather like "
           "in the city that I have asked you about before, and what shall I wear there?\"}]}");
    if (!(at = head(s))) FAIL("no answer");
    if (!strstr(s->data, " 200 ")) FAIL("another answer: %s", s->data);
    n = length(s->data);
    while (s->have < at + n)
        if (!more(s)) FAIL("half an answer");
    use(s, at + n);
}

struct posting {
    pthread_t thread;
    struct stream *stream;
    long count;
    double *took;
};

static void *posting(void *of) {
    struct posting *p = of;
    for (long i = 0; i < p->count; i++) {
        double start = now();
        post(p->stream);
        p->took[i] = now() - start;
    }
    return NULL;
}

struct listening {
    pthread_t thread;
    struct stream *stream;
    long count, gap;
    double *took;
};

static void *listening(void *of) {
    struct listening *l = of;
    struct stream *s = l->stream;
    char body[256], *found;
    long seen = 0;
    sprintf(body, "{\"model\":\"m\",\"max_tokens\":5,\"stream\":true,\"messages\":[],\"metadata\":{\"events\":%ld,\"gap\":%ld}}",
            l->count, l->gap);
    ask(s, body);
    while (seen < l->count) {
        if (!more(s)) FAIL("the stream ended after %ld events", seen);
        double came = now();
        size_t used = 0;
        while ((found = strstr(s->data + used, "\"t\":")) && strstr(found, "\n\n")) {
            l->took[seen++] = came - atof(found + 4);
            used = strstr(found, "\n\n") - s->data;
        }
        use(s, used);
    }
    return NULL;
}

static int act(int count, char **arguments) {
    const char *what = arguments[4];
    long n = atol(arguments[5]), streams = count > 6 ? atol(arguments[6]) : 1, gap = count > 7 ? atol(arguments[7]) : 0;
    double *took = calloc(n * streams, sizeof *took), began;
    place = arguments[0], tunnel = atoi(arguments[1]), key = arguments[3];
    context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    if (SSL_CTX_load_verify_locations(context, arguments[2], NULL) != 1) FAIL("cannot read %s", arguments[2]);
    if (!strcmp(what, "events")) {
        struct listening *all = calloc(streams, sizeof *all);
        for (long i = 0; i < streams; i++) {
            all[i] = (struct listening){.stream = begin(), .count = n, .gap = gap, .took = took + i * n};
            post(all[i].stream);
        }
        began = now();
        for (long i = 0; i < streams; i++) {
            pthread_create(&all[i].thread, NULL, listening, &all[i]);
            usleep(gap / streams);
        }
        for (long i = 0; i < streams; i++) pthread_join(all[i].thread, NULL);
        n *= streams;
    } else if (!strcmp(what, "post")) {
        struct posting *all = calloc(streams, sizeof *all);
        for (long i = 0; i < streams; i++) {
            all[i] = (struct posting){.stream = begin(), .count = n, .took = took + i * n};
            post(all[i].stream);
        }
        began = now();
        for (long i = 0; i < streams; i++) pthread_create(&all[i].thread, NULL, posting, &all[i]);
        for (long i = 0; i < streams; i++) pthread_join(all[i].thread, NULL);
        n *= streams;
    } else if (!strcmp(what, "idle")) {
        for (long i = 0; i < n; i++) post(begin());
        printf("open\n");
        fflush(stdout);
        getchar();
        return 0;
    } else {
        struct stream *s = begin();
        post(s);
        began = now();
        for (long i = 0; i < n; i++) {
            double start = now();
            end(s), s = begin();
            post(s);
            took[i] = now() - start;
        }
    }
    printf("%.9f\n", now() - began);
    for (long i = 0; i < n; i++) printf("%.1f\n", took[i] * 1e6);
    return 0;
}

int main(int count, char **arguments) {
    signal(SIGPIPE, SIG_IGN);
    if (count == 5 && !strcmp(arguments[1], "provider")) return provide(arguments + 2);
    if (count >= 8 && !strcmp(arguments[1], "agent")) return act(count - 2, arguments + 2);
    FAIL("usage: see the top of mitm_load.c");
}
