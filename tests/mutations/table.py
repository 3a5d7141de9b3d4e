"""All mutants, in the order of DESIGN section 2."""

from mutations import table_driver, table_holding, table_record

MUTANTS = table_record.MUTANTS + table_holding.MUTANTS + table_driver.MUTANTS
assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS), "a mutant's name is its own"
