// Probes: the answers of /livez, /readyz, /leaderz and /standbyz: role x store state x application
// to a status code (DESIGN 5). Pure: they look at Control and nothing else. With a lease name only
// that lease is asked; without one all of them must say yes.
#pragma once

#include <string>

#include "admin/control.h"
#include "admin/http_message.h"

namespace leasehold::admin {

// 200: that it is answered shows that the loop turns, whatever the store does.
HttpAnswer Livez();
// 200 while holding, whatever the store does; on a standby when its application is ready and the
// store answered within one TTL, so that a rollout does not wait for leadership. 503 says why.
HttpAnswer Readyz(const Control& control, const std::string& lease);
// 200 only while holding.
HttpAnswer Leaderz(const Control& control, const std::string& lease);
// 200 only on a hot standby; this version has cold ones only, so it says why not.
HttpAnswer Standbyz(const Control& control, const std::string& lease);

}  // namespace leasehold::admin
