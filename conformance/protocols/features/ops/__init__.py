"""Operations of controllers of feature versions, one module for each machine."""
