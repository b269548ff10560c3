"""Jobs on their switches: the store that outlives commands and controllers, and every switch of a topology at once."""
