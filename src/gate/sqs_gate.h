// SqsGate: the valve between an application's SQS SDK and SQS (DESIGN 4, sqs). An outbound gate: a
// plain HTTP/1.1 server on loopback for the SDK, whole requests and whole answers, and the service
// itself as its upstream, signed with the sidecar's credentials. Made by app, owned by the lease's
// driver. What SQS's two protocols look like is proto/sqs*.h's.
#pragma once

#include <memory>

#include "aws/credentials.h"
#include "aws/endpoint.h"
#include "gate/gate.h"
#include "gate/options.h"

namespace leasehold::gate {

// `options.type` is kSqs and `options.outbound` true; `endpoint` is the service's, resolved.
std::unique_ptr<Gate> MakeSqsGate(const Options& options, Host host,
                                  std::shared_ptr<aws::CredentialsProvider> credentials,
                                  aws::Endpoint endpoint);

}  // namespace leasehold::gate
