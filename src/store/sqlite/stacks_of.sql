SELECT parent, frame FROM stack WHERE id = :stack
