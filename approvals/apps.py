from collections.abc import Collection, Mapping

from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    name = "approvals"
    verbose_name = "Approvals"

    def ready(self) -> None:
        from runs.timeline import rules

        rules.use(_sentences)


def _sentences(account_id: int, ids: Collection[int]) -> Mapping[int, str]:
    """What these policies say, for the timeline of a run."""
    from approvals.models import Policy
    from approvals.rules import rule_sentence

    found = Policy.objects.filter(account=account_id, pk__in=ids).select_related("end_user")
    return {policy.pk: rule_sentence(policy) for policy in found}
