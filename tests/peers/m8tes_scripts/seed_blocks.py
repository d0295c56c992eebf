"""The code of m8tes' page on people in the loop, as it is printed there: what has to run against us unchanged.

Below each piece stands what it needs to find (m8tes-http 8.11).
"""

QUICK_START = """\
from m8tes import M8tes

client = M8tes()

run = client.runs.create(agent_id=1, message="draft and send a weekly customer update",
                         human_in_the_loop=True, permission_mode="approval", stream=False)

run = client.runs.wait(
    run.id,
    on_question=lambda req: {"Which segment?": "enterprise"},  # answer questions
    on_approval=lambda req: "allow",                           # approve tool calls
)
print(run.output)
"""
"""An agent with id 1 that asks “Which segment?” and then calls a tool that needs approval."""

ANSWER = """\
client.runs.answer(run.id, answers={"Which customer segment should I prioritize?": "enterprise"})
"""
"""A run that waits for this question."""

LOOK_AND_ANSWER = """\
for req in client.runs.permissions(run.id):
    if req.tool_name == "AskUserQuestion" and req.status == "pending":
        for q in req.tool_input["questions"]:
            # q["question"] is the answer key; q["options"] is the list of choices
            print(q["question"], [o["label"] for o in q["options"]])
        client.runs.answer(run.id, answers={"Which customer segment should I prioritize?": "enterprise"})
"""
"""A run that waits for this question."""

APPROVE = """\
for req in client.runs.permissions(run.id):
    if req.status == "pending":
        client.runs.approve(run.id, request_id=req.request_id,
                            decision="allow",  # or "deny"
                            remember=True)     # also stores a cross-run always-allow policy
"""
"""A run that waits for a tool's approval."""

SWITCH_MODE = """\
client.runs.update_permission_mode(run_id=42, permission_mode="autonomous")
client.runs.update_permission_mode(run_id=42, permission_mode="approval")
"""
"""A run with id 42 that is alive through both calls: it waits for an answer."""

ALLOW_FOR_A_USER = """\
client.permissions.create(user_id="cust_123", tool="slack")
client.permissions.create(user_id="cust_123", tool="linear")
"""
"""Nothing; the end user is made by it."""

ALLOW_FOR_THE_ACCOUNT = """\
client.permissions.create(tool="slack")           # applies to runs with no user_id
for policy in client.permissions.list():          # standing account-level approvals
    client.permissions.delete(policy.id)          # revoke one
"""
"""Nothing."""

ONBOARD = """\
def onboard_user(user_id: str):
    client.users.create(user_id=user_id)
    for tool in ["slack", "linear", "googlesheets"]:
        client.permissions.create(user_id=user_id, tool=tool)
"""
"""A user id that is not known yet."""

AWAITING_INPUT = """\
{
  "type": "run.awaiting_input",
  "data": {
    "id": 42,
    "status": "awaiting_approval",
    "questions": [
      {
        "question": "Which customer segment should I prioritize?",
        "header": "Segment",
        "multiSelect": false,
        "options": [
          { "label": "enterprise", "description": "Large orgs (500+ seats)" },
          { "label": "mid-market", "description": "Growing teams" }
        ]
      }
    ]
  }
}
"""
"""The body of a webhook, to compare ours with."""

REPLY = """\
run = client.runs.reply_and_wait(
    run.id,
    message="also break it down by region",
    on_approval=lambda req: "allow",
)
print(run.output)
"""
"""A run that has ended, whose agent calls a tool that needs approval when it gets this reply."""
