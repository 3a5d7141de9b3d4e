#include "lib/https_server.h"

#include <fstream>
#include <utility>

#include "lib/certificates.h"

namespace leasehold::testing {
namespace {

constexpr const char* kScript = R"(
import http.server, os, ssl, sys

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        size = int(self.headers.get("Content-Length", "0"))
        body = f"{self.client_address[1]} {len(self.rfile.read(size))}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST

    def log_message(self, *arguments):
        pass

class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, address):
        pass  # a client that refuses the certificate

certificate, key, port_file = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
server = Server(("127.0.0.1", 0), Handler)
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
with open(port_file + ".new", "w") as file:
    file.write(str(server.server_address[1]))
os.rename(port_file + ".new", port_file)
server.serve_forever()
)";

}  // namespace

base::Result<std::unique_ptr<HttpsServer>> HttpsServer::Start(loop::Loop& loop,
                                                              const std::string& certificate) {
  std::unique_ptr<HttpsServer> server(new HttpsServer);
  const Certificates& certificates = Certificates::Get();
  loop::ChildOptions options;
  options.argv = {"python3",
                  "-c",
                  kScript,
                  certificates.File(certificate + ".pem"),
                  certificates.File(certificate + ".key"),
                  server->dir_.File("port")};
  HttpsServer* self = server.get();
  base::Result<std::unique_ptr<loop::Child>> child =
      loop::Child::Start(loop, options, [self](const loop::ChildExit& exit) {
        self->ended_ = true;
        self->last_words_ = exit.output;
      });
  if (!child) return child.error();
  server->child_ = std::move(*child);
  return server;
}

uint16_t HttpsServer::port() {
  if (port_ == 0) std::ifstream(dir_.File("port")) >> port_;
  return port_;
}

}  // namespace leasehold::testing
