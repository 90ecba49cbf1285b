"""The KI: takes signed match records, keeps the ledger of ranking-points, and shows what came of them.

It imports nothing of the table but the record, so the same code stands beside one table or serves many.
"""
